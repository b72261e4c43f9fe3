"""Watchers of jobs and nodes, which ask Slurm once for all sessions and forms.

However many sessions ask how their job is, and however many forms ask what the cluster has, there
is one ``squeue`` in an interval and one look at the nodes in a longer one. A question that fails,
or that takes too long, changes nothing: the answer is then "unknown", never "gone".
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from jupyterhub_gpu_slurm.defaults import SlurmDefaults
from jupyterhub_gpu_slurm.errors import SlurmError, UnreadableOutput
from jupyterhub_gpu_slurm.shared_answer import SharedAnswer
from jupyterhub_gpu_slurm.slurm.client import SlurmClient
from jupyterhub_gpu_slurm.slurm.records import Cluster, Job

T = TypeVar("T")

log = logging.getLogger(__name__)

_UNKNOWN = ""
GONE = "GONE"


@dataclass(frozen=True)
class PollIntervals:
    """Intervals between queries for jobs, in seconds."""

    busy: float = SlurmDefaults.query_interval_seconds
    """While a session starts or ends; more often only for who is in a hurry."""
    hurried: float = 0.1
    """For a session that listens, when the last answer is from before its job ran."""
    waiting: float = 5.0
    """While sessions wait in the queue for long."""
    quiet: float = SlurmDefaults.quiet_interval_seconds
    """While sessions only run."""
    longest: float = 60.0
    """Between two tries, at most, while Slurm does not answer."""
    patience: float = 5.0
    """How long somebody who asks waits for an answer."""


async def told(question: Awaitable[T]) -> T:
    """Return Slurm's answer; raises `SlurmError` also for what nobody had thought of.

    Whoever watches goes on then as when Slurm does not answer: what was told before is old.
    """
    try:
        return await question
    except SlurmError:
        raise
    except Exception as error:
        (place,) = traceback.extract_tb(error.__traceback__, -1)
        detail = f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
        raise UnreadableOutput("Slurm's answer cannot be used.", detail=detail) from error


class JobWatcher:
    """The jobs of all sessions of this hub.

    Nobody asks Slurm but by asking here, and an answer is everybody's: so the sessions' number does
    not matter, only how fresh the answer must be for the one who is in the greatest hurry.
    """

    def __init__(self, client: SlurmClient, pace: PollIntervals) -> None:
        self.pace = pace
        self._client = client
        self._watched: set[int] = set()
        self._known: dict[int, Job] = {}
        self._asked: frozenset[int] = frozenset()
        self._asked_at = -float("inf")
        self._failures = 0
        self._not_before = -float("inf")
        self._asking: asyncio.Task[None] | None = None

    def forget(self, job_id: int) -> None:
        """Stop asking for this job; who waits for an answer still gets it."""
        self._watched.discard(job_id)

    async def job(
        self, job_id: int, *, max_age: float | None = None, is_hurried: bool = False
    ) -> Job:
        """Return a job as of at most ``max_age`` seconds ago (default: the quiet pace).

        Who ``is_hurried`` does not wait until the busy pace allows the next question.

        It is asked for from now on, with all others, until it is forgotten. A job in state
        ``UNKNOWN`` when Slurm does not answer; in state ``GONE`` when two answers, a while apart,
        did not have the job, and a second opinion did not either.
        """
        gap = min(self.pace.hurried, self.pace.busy) if is_hurried else self.pace.busy
        job = await self._job(job_id, self.pace.quiet if max_age is None else max_age, gap)
        if job is None:
            await asyncio.sleep(self.pace.busy)
            job = await self._job(job_id, 0, self.pace.busy)
        return job or Job(job_id, await self._last_word(job_id))

    async def _last_word(self, job_id: int) -> str:
        try:
            is_known = await self._client.knows(job_id)
        except SlurmError as error:
            log.warning("Slurm does not tell whether there is a job %d: %s", job_id, error.detail)
            return _UNKNOWN
        if is_known:
            log.warning("squeue does not name job %d, but Slurm knows it", job_id)
        return _UNKNOWN if is_known else GONE

    async def _job(self, job_id: int, max_age: float, gap: float) -> Job | None:
        """Return a job, or ``None`` when Slurm answered and does not know it."""
        wanted_since = time.monotonic() - max_age
        patient_until = time.monotonic() + self.pace.patience
        while self._asked_at < wanted_since or job_id not in self._asked:
            self._watched.add(job_id)
            if self._asking is None:
                if time.monotonic() < self._not_before:
                    return Job(job_id, _UNKNOWN)
                early = self._asked_at + gap - time.monotonic()
                if early > 0:
                    # Where many are submitted or stopped, one question is for all of them.
                    await asyncio.sleep(early)
                    continue
                self._asking = asyncio.create_task(self._ask())
            asking = self._asking
            left = max(0.0, patient_until - time.monotonic())
            done, _ = await asyncio.wait({asking}, timeout=left)
            if not done:
                return Job(job_id, _UNKNOWN)
            asking.result()
        return Job(job_id, _UNKNOWN) if self._failures else self._known.get(job_id)

    async def _ask(self) -> None:
        asked, asked_at = frozenset(self._watched), time.monotonic()
        try:
            known = await told(self._client.jobs(asked))
        except SlurmError as error:
            if not self._failures:
                log.warning("Slurm does not tell how the sessions' jobs are: %s", error.detail)
            self._failures += 1
            pause = min(self.pace.longest, self.pace.busy * 2**self._failures)
            self._not_before = time.monotonic() + pause
        else:
            if self._failures:
                log.warning("Slurm tells again how the sessions' jobs are")
            self._failures = 0
            self._known = known
        finally:
            self._asked, self._asked_at, self._asking = asked, asked_at, None


class ClusterWatcher:
    """The partitions and nodes, for the form and for nodes' addresses."""

    def __init__(self, client: SlurmClient, interval: float, patience: float = 2.0) -> None:
        """Ask once in ``interval`` seconds at most; see `SharedAnswer` for ``patience``."""
        self._client = client
        self._answer = SharedAnswer(self._ask, interval, patience=patience)

    def look(self) -> None:
        """Have Slurm asked, if the last answer is older than an interval; wait for nothing."""
        self._answer.refresh()

    @property
    def last(self) -> Cluster | None:
        """The cluster as Slurm told it last; ``None`` where it did not answer the last question."""
        return self._answer.latest if self.is_answering else None

    @property
    def is_answering(self) -> bool | None:
        """Whether Slurm answered the last question; ``None``: nothing was asked yet."""
        if self._answer.failure is not None:
            return False
        return True if self._answer.latest is not None else None

    async def cluster(self) -> Cluster:
        """Return the cluster as of at most an interval ago.

        When Slurm does not answer, or is slow, the last answer; raises `SlurmError` when there is
        none.
        """
        try:
            return await self._answer.get()
        except SlurmError:
            if self._answer.latest is None:
                raise
            return self._answer.latest

    async def _ask(self) -> Cluster:
        try:
            return await told(self._client.cluster())
        except SlurmError as error:
            if self._answer.failure is None and self._answer.latest is not None:
                log.warning("Slurm does not tell how the nodes are: %s", error.detail)
            raise
