"""A session's job at Slurm, from the order to its end. Nothing here knows of JupyterHub.

Its owner keeps the session's id and the job's number (`state.SessionState`), and gives them with
each call; what Slurm said last is kept here.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.errors import AccountUnavailable, SessionEnded, SlurmError, SpawnerError
from jupyterhub_gpu_slurm.session import endings
from jupyterhub_gpu_slurm.session.observation import Ending, ending_of
from jupyterhub_gpu_slurm.slurm.records import Job, JobState

T = TypeVar("T")

STARTING_INTERVAL = 0.5
_ENDING_INTERVAL = 0.2
_LAST_WORD_SECONDS = 2.0
_SHORT_WAIT_SECONDS = 60.0
# How often a user is asked for whom sudo does not let the hub act as.
_ACCOUNT_TRIES = 3
_RETRY_SECONDS = (1, 2, 5, 10, 20, 30)
_LATE_COMER_LOOKS = 5
_LATE_COMER_SECONDS = 2.0


@dataclass(frozen=True)
class JobLimits:
    """How long it may take, in seconds: from its start to the port, in the queue, to its end."""

    launch: float
    queue: float
    end: float


class Listener(Protocol):
    """Who hears of the job."""

    def note_job(self, job: Job) -> None:
        """Hear what Slurm says of it."""

    def note_end(self, ending: Ending, job: Job | None) -> None:
        """Hear that it is over."""


class SessionJob:
    """The jobs of one user's session; ``name`` is the session's in logs.

    ``operator`` is the account that ends the jobs of deleted accounts, or empty.
    """

    def __init__(
        self,
        slurm: SlurmConnection,
        username: str,
        name: str,
        limits: JobLimits,
        operator: str,
        listener: Listener,
        log: logging.Logger | logging.LoggerAdapter[Any],
    ) -> None:
        self._slurm = slurm
        self._username = username
        self._name = name
        self._limits = limits
        self._operator = operator
        self._listener = listener
        self._log = log
        self.last: Job | None = None
        """What Slurm said last."""
        self.exit_status: int | None = None
        """How it ended; ``None`` while it is not known to be over."""

    def begin(self) -> None:
        """Know nothing of a job any more, nor of its end."""
        self.last = self.exit_status = None

    def forget(self, job_id: str) -> None:
        """Do not ask for the job any more."""
        if job_id:
            self._slurm.jobs.forget(int(job_id))

    async def submit(self, session_id: str, script: str) -> str:
        """Submit it; return its number."""
        return str(await self._slurm.client.submit(self._username, session_id, script))

    async def find(self, session_id: str) -> str:
        """Return the number of the job that carries this session's mark; empty for none."""
        sessions = await self._insist(lambda: self._slurm.client.sessions(self._username), "")
        return next((f"{number}" for number, one in sessions.items() if one == session_id), "")

    async def look(self, job_id: str, max_age: float | None = None) -> Job:
        """Return what Slurm says of the job, at most ``max_age`` seconds old."""
        self.last = await self._slurm.jobs.job(int(job_id), max_age=max_age)
        self._listener.note_job(self.last)
        return self.last

    # --- the start ---

    async def await_port(self, job_id: str, port: "asyncio.Future[int]") -> int:
        """Wait for the session's own word, as long as its job is well.

        Raises:
            SessionEnded: it will not become a session.

        """
        watching = asyncio.create_task(self._watch_start(job_id))
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

    async def _watch_start(self, job_id: str) -> None:
        loop = asyncio.get_running_loop()
        asked_at, launched_at = loop.time(), None
        while True:
            waited = loop.time() - asked_at
            is_hurried = launched_at is not None or waited < _SHORT_WAIT_SECONDS
            pace = self._slurm.jobs.pace
            job = await self.look(job_id, max_age=pace.busy if is_hurried else pace.waiting)
            if job.state.is_over:
                ending = await self.record_end(job)
                raise SessionEnded(
                    endings.not_started(ending),
                    log_lines=await self._log_tail(job_id),
                )
            if job.state is JobState.RUNNING:
                launched_at = launched_at or loop.time()
                if loop.time() - launched_at > self._limits.launch:
                    raise SessionEnded(
                        endings.silent(job_id, job.node, self._limits.launch),
                        log_lines=await self._log_tail(job_id),
                    )
            elif waited > self._limits.queue:
                raise SessionEnded(endings.waited_too_long(job_id, self._limits.queue))
            await asyncio.sleep(STARTING_INTERVAL)

    async def address(self, job_id: str) -> str:
        """Return where the job's node is reached, as Slurm says.

        Raises:
            SessionEnded: the job is over, and nobody has said on which node it was.

        """
        job = await self.look(job_id, max_age=self._slurm.jobs.pace.busy)
        while job.node is None:
            # A question that failed says nothing: the server listens, so its node will be known.
            if job.state.is_over:
                ending = await self.record_end(job)
                raise SessionEnded(endings.ended_while_starting(ending))
            job = await self.look(job_id, max_age=0)
            if job.node is None:
                await asyncio.sleep(STARTING_INTERVAL)
        cluster = await self._slurm.nodes.cluster()
        return cluster.address_of(job.node) or job.node

    async def _log_tail(self, job_id: str) -> tuple[str, ...]:
        """Return the end of the job's own words, where they can be had."""
        try:
            return tuple(await self._slurm.client.log_tail(self._username, int(job_id)))
        except SlurmError as error:
            self._log.warning("No log of job %s: %s", job_id, error.detail)
            return ()

    # --- the end ---

    async def record_end(self, job: Job) -> str:
        """Remember that the job is over; return how it ended, in words.

        Until the job has left its node Slurm says "completing"; its last word is worth a moment.
        """
        deadline = asyncio.get_running_loop().time() + _LAST_WORD_SECONDS
        while job.state is JobState.COMPLETING and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_ENDING_INTERVAL)
            job = await self.look(f"{job.job_id}", max_age=0)
        self._listener.note_end(ending_of(job), job)
        ending = endings.ended(job)
        self._log.info("The session of %s is over: %s", self._name, ending)
        self._slurm.jobs.forget(job.job_id)
        self.exit_status = 0 if job.slurm_state in ("COMPLETED", "CANCELLED") else 1
        return ending

    async def end_requeued(self, session_id: str, job_id: str) -> bool:
        """Cancel a job that somebody put back into the queue; ``False`` if it is not done yet."""
        try:
            await self._cancel_once(session_id, job_id)
        except SlurmError as error:
            self._log.warning("Job %s is not cancelled yet: %s", job_id, error.detail)
            return False
        self._listener.note_end(Ending.REQUEUED, None)
        self.forget(job_id)
        self.exit_status = 1
        return True

    async def cancel(self, session_id: str, job_id: str = "") -> list[int]:
        """Cancel the session's jobs, once Slurm takes the order; return their numbers.

        Raises:
            AccountUnavailable: nobody lets the hub act for the user.

        """
        return await self._insist(lambda: self._cancel_once(session_id, job_id), job_id)

    async def cancel_late_comer(self, session_id: str) -> None:
        """Cancel a job whose number never came.

        A slurmctld that had stopped answering may still find the submission in its inbox, so one
        look is not enough.
        """
        for _ in range(_LATE_COMER_LOOKS):
            if await self.cancel(session_id):
                return
            await asyncio.sleep(_LATE_COMER_SECONDS)

    async def await_end(self, job_id: str) -> None:
        """Wait until the job has left its node: until then its GPUs are not free."""
        deadline = asyncio.get_running_loop().time() + self._limits.end
        over = (JobState.ENDED, JobState.GONE)
        while (await self.look(job_id, max_age=0)).state not in over:
            if asyncio.get_running_loop().time() > deadline:
                self._log.warning(
                    "Job %s of %s is cancelled, but still on its node after %g s",
                    job_id,
                    self._name,
                    self._limits.end,
                )
                return
            await asyncio.sleep(_ENDING_INTERVAL)

    async def _cancel_once(self, session_id: str, job_id: str) -> list[int]:
        client = self._slurm.client
        try:
            return await client.cancel(self._username, session_id)
        except AccountUnavailable:
            if not (self._operator and job_id):
                raise
        return await client.end(self._operator, self._username, session_id, int(job_id))

    async def _insist(self, ask: Callable[[], Awaitable[T]], job_id: str) -> T:
        """Ask Slurm until it answers; raises `AccountUnavailable` when that does not help."""
        attempt = refusals = 0
        while True:
            try:
                return await ask()
            except SlurmError as error:
                refusals += isinstance(error, AccountUnavailable)
                if refusals >= _ACCOUNT_TRIES:
                    raise
                delay = _RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)]
                self._log.warning(
                    "Slurm does not take care of job %s of %s yet, next try in %d s: %s",
                    job_id,
                    self._name,
                    delay,
                    error.detail,
                )
                await asyncio.sleep(delay)
                attempt += 1
