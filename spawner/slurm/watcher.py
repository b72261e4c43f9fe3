"""One question to Slurm for everybody.

However many sessions ask how their job is, and however many forms ask what the cluster has, there
is one ``squeue`` in an interval and one look at the nodes in a longer one. A question that fails
changes nothing: the answer is then "unknown", never "gone".
"""

import asyncio
import logging
import time

from spawner.errors import SlurmError
from spawner.slurm.client import SlurmClient
from spawner.slurm.records import Cluster, Job

log = logging.getLogger(__name__)

_UNKNOWN = ""
GONE = "GONE"


class JobWatcher:
    """The jobs of all sessions of this hub. All times are seconds."""

    def __init__(self, client: SlurmClient, interval: float) -> None:
        self._client = client
        self._interval = interval
        self._watched: set[int] = set()
        self._known: dict[int, Job] = {}
        self._asked: frozenset[int] = frozenset()
        self._asked_at = -float("inf")
        self._is_failing = False
        self._asking = asyncio.Lock()

    def watch(self, job_id: int) -> None:
        """Ask for this job from now on."""
        self._watched.add(job_id)

    def forget(self, job_id: int) -> None:
        """Stop asking for this job."""
        self._watched.discard(job_id)
        self._asked -= {job_id}
        self._known.pop(job_id, None)

    async def job(self, job_id: int, *, max_age: float | None = None) -> Job:
        """Return a job as of at most ``max_age`` ago (default: the interval).

        A job in state ``UNKNOWN`` when Slurm does not answer, in state ``GONE`` when it answers
        and does not know the job.
        """
        self.watch(job_id)
        wanted_since = time.monotonic() - (self._interval if max_age is None else max_age)
        async with self._asking:
            # Whoever waited for the lock finds the answer that was fetched meanwhile.
            if self._asked_at < wanted_since or job_id not in self._asked:
                await self._ask()
        if self._is_failing:
            return Job(job_id, _UNKNOWN)
        return self._known.get(job_id, Job(job_id, GONE))

    async def _ask(self) -> None:
        asked = frozenset(self._watched)
        try:
            known = await self._client.jobs(asked)
        except SlurmError as error:
            if not self._is_failing:
                log.warning("Slurm does not tell how the sessions' jobs are: %s", error.detail)
            self._is_failing = True
        else:
            if self._is_failing:
                log.warning("Slurm tells again how the sessions' jobs are")
            self._is_failing = False
            self._known = known
        self._asked = asked
        self._asked_at = time.monotonic()


class ClusterWatcher:
    """The partitions and nodes, for the form and for nodes' addresses."""

    def __init__(self, client: SlurmClient, interval: float) -> None:
        self._client = client
        self._interval = interval
        self._cluster: Cluster | None = None
        self._asked_at = -float("inf")
        self._asking = asyncio.Lock()

    async def cluster(self) -> Cluster:
        """Return the cluster as of at most an interval ago.

        When Slurm does not answer, the last answer; raises `SlurmError` when there is none.
        """
        async with self._asking:
            if self._cluster is None or time.monotonic() - self._asked_at > self._interval:
                try:
                    self._cluster = await self._client.cluster()
                except SlurmError as error:
                    if self._cluster is None:
                        raise
                    log.warning("Slurm does not tell how the nodes are: %s", error.detail)
                self._asked_at = time.monotonic()
            return self._cluster
