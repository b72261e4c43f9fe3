"""The connection to Slurm that all sessions of a hub share: its client, watchers and caches."""

from dataclasses import dataclass
from typing import Self

from jupyterhub_gpu_slurm.outlook.availability import AvailabilityCounter
from jupyterhub_gpu_slurm.outlook.forecaster import Forecaster
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.shared_answer import SharedAnswer
from jupyterhub_gpu_slurm.slurm.association_cache import AssociationCache
from jupyterhub_gpu_slurm.slurm.client import SlurmClient
from jupyterhub_gpu_slurm.slurm.queue_positions import QueuePosition
from jupyterhub_gpu_slurm.slurm.watcher import ClusterWatcher, JobWatcher, PollIntervals

_PATIENCE_SECONDS = 1.0
"""How long a page waits for newer places where there are older ones."""


@dataclass(frozen=True)
class SlurmConnection:
    """The hub's Slurm client, with the watchers and caches of its answers."""

    client: SlurmClient
    jobs: JobWatcher
    nodes: ClusterWatcher
    free: AvailabilityCounter
    forecasts: Forecaster
    accounts: AssociationCache
    queue_positions: SharedAnswer[dict[int, QueuePosition]]
    """Of the jobs that wait; asked for only while somebody waits."""

    @classmethod
    def through(
        cls, client: SlurmClient, pace: PollIntervals, cluster_interval: float, shape: ResourceShape
    ) -> Self:
        """Return the one that asks through this client.

        It asks for jobs at this pace, and for nodes every ``cluster_interval`` seconds while
        somebody looks; what is free is counted in sessions of this shape.
        """
        return cls(
            client,
            JobWatcher(client, pace),
            ClusterWatcher(client, cluster_interval),
            AvailabilityCounter(shape),
            Forecaster(client),
            AssociationCache(client),
            SharedAnswer(client.queue_positions, cluster_interval, patience=_PATIENCE_SECONDS),
        )
