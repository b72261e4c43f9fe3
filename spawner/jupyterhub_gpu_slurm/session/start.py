"""The start of a session, from the request until the session says where it listens.

Nothing here knows of JupyterHub. Its owner gives the job's number with each call.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.errors import SessionEnded, SlurmError, SpawnerError
from jupyterhub_gpu_slurm.session import endings, progress
from jupyterhub_gpu_slurm.session.deadline import StartLimits
from jupyterhub_gpu_slurm.session.job import SessionJob
from jupyterhub_gpu_slurm.slurm.queue_positions import QueuePosition
from jupyterhub_gpu_slurm.slurm.records import JobState

_INTERVAL = 0.5
_SHORT_WAIT_SECONDS = 60.0
# JupyterHub notices only when it tells something that a page has left, and asks on until then.
_AGAIN_SECONDS = 10.0


class SessionStart:
    """The start of one user's session: its port, which the session itself says, and its job."""

    def __init__(
        self,
        slurm: SlurmConnection,
        username: str,
        job: SessionJob,
        limits: Callable[[], StartLimits],
        log: logging.Logger | logging.LoggerAdapter[Any],
    ) -> None:
        self._slurm = slurm
        self._username = username
        self._job = job
        self._limits = limits
        self._log = log
        self._asked_at: datetime | None = None
        self._port: asyncio.Future[int] | None = None

    def begin(self) -> None:
        """Know nothing of the start before, nor of its job."""
        self._job.begin()
        self._asked_at = datetime.now(UTC)

    def resume(self, asked_at: float) -> None:
        """Count the wait from when the session was asked for, before this hub began."""
        if asked_at:
            self._asked_at = datetime.fromtimestamp(asked_at, UTC)

    def expect_port(self) -> None:
        """Take a port from now on: that of the job which is about to be submitted or taken over."""
        self._port = asyncio.get_running_loop().create_future()

    def take_port(self, port: int) -> bool:
        """Take the port from the session; ``False`` when none is awaited."""
        if self._port is None or self._port.done():
            return False
        self._port.set_result(port)
        return True

    async def take_over(self, session_id: str, job_id: str, *, is_wanted: bool) -> str:
        """Return the number of an interrupted start's job, empty where it is not there any more.

        One that is no longer wanted is cancelled. Its port may come while Slurm is asked.

        Raises:
            AccountUnavailable: nobody lets the hub act for the user.

        """
        self.expect_port()
        if is_wanted:
            return await self._job.find(session_id)
        await self._job.cancel(session_id, job_id)
        return ""

    def end(self) -> None:
        """Take no port any more."""
        self._port = None

    async def await_port(self, job_id: str) -> int:
        """Wait for the session's own word, as long as its job is well.

        Raises:
            SessionEnded: it will not become a session.

        """
        assert self._port is not None  # noqa: S101  `expect_port` comes first
        port = self._port
        watching = asyncio.create_task(self._watch(job_id))
        try:
            either: set[asyncio.Future[Any]] = {port, watching}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not port.done():
                watching.result()
            return port.result()
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError, SpawnerError):
                await watching

    async def address(self, job_id: str) -> str:
        """Return where the job's node is reached, as Slurm says.

        Raises:
            SessionEnded: the job is over.

        """
        # It listens, and somebody waits: a job that no answer has had yet is asked for at once.
        job = await self._job.look(job_id, max_age=self._slurm.jobs.pace.busy, is_hurried=True)
        while job.node is None or job.state.is_over:
            # A question that failed says nothing: the server listens, so its node will be known.
            if job.state.is_over:
                ending = await self._job.record_end(job)
                raise SessionEnded(
                    endings.ended_while_starting(ending), log_lines=await self._log_tail(job_id)
                )
            # Slurm was asked before its job ran.
            job = await self._job.look(job_id, max_age=0, is_hurried=True)
            if job.node is None:
                await asyncio.sleep(_INTERVAL)
        cluster = await self._slurm.nodes.cluster()
        return cluster.address_of(job.node) or job.node

    async def progress(
        self, gpus: Callable[[], int], gpu_type: str | None, feature: str | None
    ) -> AsyncIterator[dict[str, Any]]:
        """Tell the spawn page how the job is, whenever that changes, and now and then again.

        A job for these GPUs that waits is told of fewer that are free where it would run. How many
        they are may be decided only while the page is open. ``now`` is the hub's moment (ISO 8601,
        UTC).
        """
        said: dict[str, Any] = {}
        said_at = 0.0
        while True:
            job = self._job.last
            position, moment = await self._queue_position(), datetime.now(UTC)
            event = progress.event(job, self._asked_at, moment, position)
            fewer = await self._fewer_free(gpus(), gpu_type, feature)
            event |= {"fewer_free": fewer} if fewer else {}
            now = asyncio.get_running_loop().time()
            if event != said or now - said_at >= _AGAIN_SECONDS:
                said, said_at = event, now
                yield event | {"now": moment.isoformat()}
            await asyncio.sleep(_INTERVAL)

    async def _queue_position(self) -> QueuePosition | None:
        job = self._job.last
        if job is None or job.state is not JobState.PENDING:
            return None
        try:
            return (await self._slurm.queue_positions.get()).get(job.job_id)
        except SlurmError:
            return None

    async def _fewer_free(self, gpus: int, gpu_type: str | None, feature: str | None) -> int:
        """Return how many GPUs one session could have now, if fewer than asked for; else 0."""
        job = self._job.last
        if job is None or job.state is not JobState.PENDING or not job.partition:
            return 0
        try:
            cluster = await self._slurm.nodes.cluster()
        except SlurmError:
            return 0
        has = self._slurm.free.with_feature(cluster, job.partition, feature)
        free = 0 if has is None else has.largest_free_of(gpu_type)
        return free if free < gpus else 0

    async def _watch(self, job_id: str) -> None:
        loop = asyncio.get_running_loop()
        asked_at, launched_at = loop.time(), None
        if self._asked_at is not None:
            # The hub's end is not the end of a wait.
            asked_at -= max(0.0, (datetime.now(UTC) - self._asked_at).total_seconds())
        limits = self._limits()
        while True:
            waited = loop.time() - asked_at
            is_hurried = launched_at is not None or waited < _SHORT_WAIT_SECONDS
            pace = self._slurm.jobs.pace
            job = await self._job.look(job_id, max_age=pace.busy if is_hurried else pace.waiting)
            if job.state.is_over:
                ending = await self._job.record_end(job)
                raise SessionEnded(
                    endings.not_started(ending),
                    log_lines=await self._log_tail(job_id),
                )
            if job.state is JobState.RUNNING and not job.is_executing:
                launched_at = None
            if job.is_executing:
                launched_at = launched_at or loop.time()
                if loop.time() - launched_at > limits.launch:
                    raise SessionEnded(
                        endings.silent(job_id, job.node, limits.launch),
                        log_lines=await self._log_tail(job_id),
                    )
            # While Slurm does not answer, the job may run.
            elif waited > limits.queue and job.slurm_state:
                raise SessionEnded(endings.waited_too_long(job_id, limits.queue))
            await asyncio.sleep(_INTERVAL)

    async def _log_tail(self, job_id: str) -> tuple[str, ...]:
        """Return the end of the job's own words, where they can be had."""
        try:
            return tuple(await self._slurm.client.log_tail(self._username, int(job_id)))
        except SlurmError as error:
            self._log.warning("No log of job %s: %s", job_id, error.detail)
            return ()
