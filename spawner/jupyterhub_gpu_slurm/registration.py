"""Registers the spawner's REST API and metrics with the hub of this process."""

from typing import Any

from traitlets.config import Application

from jupyterhub_gpu_slurm import hub_api, inherited, metrics
from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.inherited import KnownOptions
from jupyterhub_gpu_slurm.metrics import ClusterSample, Moment
from jupyterhub_gpu_slurm.spawner import GpuSlurmSpawner
from jupyterhub_gpu_slurm.traits import SpawnerTraits


def join_hub() -> None:
    """Give the hub of this process what it needs of us."""
    hub_api.install()
    metrics.register(Moment(GpuSlurmSpawner.samples, cluster_sample))


def join_hub_once_chosen() -> None:
    """Join the hub of this process if its configuration names this spawner, or a subclass of it.

    The hub makes Tornado's settings when it has read its configuration, and its API after that. It
    ends, with their names, where its configuration has options that would have no effect.
    """
    hub = _hub()
    if hub is not None and hub.has_trait("tornado_settings"):
        hub.observe(_joined_if_chosen, "tornado_settings")


def cluster_sample() -> ClusterSample | None:
    """Return what Slurm said last, and have it asked again: whoever reads metrics is a viewer."""
    slurm = SpawnerTraits._connection or _slurm_of_hub()
    if slurm is None:
        return None
    slurm.nodes.look()
    if slurm.nodes.is_answering is None:
        return None
    last = slurm.nodes.last
    return ClusterSample(slurm.nodes.is_answering, last.gpus_by_state() if last else {})


def _slurm_of_hub() -> SlurmConnection | None:
    """Return the way to Slurm of a hub that has not met a user yet, made from its settings."""
    hub = _hub()
    kind = getattr(hub, "spawner_class", None)
    if hub is None or not (isinstance(kind, type) and issubclass(kind, GpuSlurmSpawner)):
        return None
    return kind(config=hub.config).slurm


def _hub() -> Application | None:
    return Application.instance() if Application.initialized() else None


def _joined_if_chosen(change: Any) -> None:
    hub = change.owner
    if issubclass(hub.spawner_class, GpuSlurmSpawner):
        if found := inherited.mistakes(hub.config, KnownOptions.of(hub.spawner_class)):
            hub.exit("\n".join(found))
        join_hub()
