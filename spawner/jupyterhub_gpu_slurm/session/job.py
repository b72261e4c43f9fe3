"""A session's Slurm job, from its submission to its end. Nothing here knows of JupyterHub.

Its owner keeps the session's id and the job's number (`state.SessionState`), and gives them with
each call; what Slurm said last is kept here.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.errors import AccountUnavailable, SlurmError
from jupyterhub_gpu_slurm.session import endings
from jupyterhub_gpu_slurm.session.observation import Ending, ending_of
from jupyterhub_gpu_slurm.slurm.records import Job, JobState

T = TypeVar("T")

_ENDING_INTERVAL = 0.2
_LAST_WORD_SECONDS = 2.0
# How often a user is asked for whom sudo does not let the hub act as.
_ACCOUNT_TRIES = 3
_RETRY_SECONDS = (1, 2, 5, 10, 20, 30)
_LATE_COMER_LOOKS = 5
_LATE_COMER_SECONDS = 2.0


class Listener(Protocol):
    """Hears what becomes of the job."""

    def note_job(self, job: Job) -> None:
        """Hear what Slurm says of it."""

    def note_end(self, ending: Ending, job: Job | None) -> None:
        """Hear that it is over."""


class SessionJob:
    """The jobs of one user's session; ``name`` is the session's in logs.

    A cancelled one may take ``end_timeout`` seconds to leave its node.
    """

    def __init__(
        self,
        slurm: SlurmConnection,
        username: str,
        name: str,
        end_timeout: float,
        listener: Listener,
        log: logging.Logger | logging.LoggerAdapter[Any],
    ) -> None:
        self._slurm = slurm
        self._username = username
        self._name = name
        self._end_timeout = end_timeout
        self._listener = listener
        self._log = log
        self.last: Job | None = None
        """What Slurm said last."""
        self.exit_status: int | None = None
        """How it ended; ``None`` while it is not known to be over."""
        self._leaves_since: float | None = None

    def begin(self) -> None:
        """Know nothing of a job any more, nor of its end."""
        self.last = self.exit_status = self._leaves_since = None

    @property
    def is_leaving(self) -> bool:
        """Whether it has ended, but is still on its node."""
        return self.last is not None and self.last.state is JobState.COMPLETING

    def forget(self, job_id: str) -> None:
        """Do not ask for the job any more."""
        if job_id:
            self._slurm.jobs.forget(int(job_id))

    async def submit(self, session_id: str, script: str, session_input: str) -> str:
        """Submit it; return its number."""
        return str(
            await self._slurm.client.submit(self._username, session_id, script, session_input)
        )

    async def find(self, session_id: str) -> str:
        """Return the number of the job that carries this session's mark; empty for none."""
        sessions = await self._insist(lambda: self._slurm.client.sessions(self._username), "")
        return next((f"{number}" for number, one in sessions.items() if one == session_id), "")

    async def look(
        self, job_id: str, max_age: float | None = None, *, is_hurried: bool = False
    ) -> Job:
        """Return what Slurm says of the job, at most ``max_age`` seconds old."""
        jobs = self._slurm.jobs
        self.last = await jobs.job(int(job_id), max_age=max_age, is_hurried=is_hurried)
        self._listener.note_job(self.last)
        return self.last

    async def check(self, session_id: str, job_id: str, *, is_ready: bool) -> str | None:
        """Return how the job has ended, in words; ``None`` unless Slurm says that it has.

        Until the job has left its node Slurm says no more than that it completes: the next calls
        wait for its last word, for as long as one that is stopped may take to leave. One that waits
        in the queue again, after its session ``is_ready``, is cancelled.
        """
        job = await self.look(job_id)
        if is_ready and job.state is JobState.PENDING:
            return await self._end_requeued(session_id, job_id)
        job = await self._last_word(job)
        if not job.state.is_over:
            return None
        now = asyncio.get_running_loop().time()
        self._leaves_since = self._leaves_since or now
        if self.is_leaving and now - self._leaves_since < self._end_timeout:
            return None
        return self._note_end(job)

    # --- the end ---

    async def record_end(self, job: Job) -> str:
        """Remember that the job is over; return how it ended, in words, as far as that is known."""
        return self._note_end(await self._last_word(job))

    async def _last_word(self, job: Job) -> Job:
        """Wait a moment for what Slurm says of a job that is completing once it has left."""
        deadline = asyncio.get_running_loop().time() + _LAST_WORD_SECONDS
        while job.state is JobState.COMPLETING and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_ENDING_INTERVAL)
            job = await self.look(f"{job.job_id}", max_age=0)
        return job

    def _note_end(self, job: Job) -> str:
        ending = endings.ended(job)
        # Where two looked at the same moment, the first has told it.
        if self.exit_status is None:
            self._listener.note_end(ending_of(job), job)
            self._log.info("The session of %s is over: %s", self._name, ending)
            self.exit_status = 0 if job.slurm_state in ("COMPLETED", "CANCELLED") else 1
        self._slurm.jobs.forget(job.job_id)
        return ending

    async def cancel(self, session_id: str, job_id: str = "") -> list[int]:
        """Cancel the session's jobs, once Slurm takes the order; return their numbers.

        Raises:
            AccountUnavailable: nobody lets the hub act for the user.

        """
        return await self._insist(lambda: self._cancel_once(session_id, job_id), job_id)

    async def end(self, session_id: str, job_id: str, *, now: bool) -> None:
        """Cancel the job; return when it has left its node, or at once if ``now``.

        While Slurm does not answer this goes on trying. Where nobody lets the hub act for the user,
        the job is left to the reconciler.
        """
        try:
            if not job_id:
                await self._cancel_late_comer(session_id)
            else:
                await self.cancel(session_id, job_id)
                if not now:
                    await self._await_end(job_id)
        except AccountUnavailable as error:
            self._log.error(
                "Job %s of %s may go on for now, the reconciler is to end it: %s",
                job_id,
                self._name,
                error.detail,
            )
        self.forget(job_id)

    async def _cancel_late_comer(self, session_id: str) -> None:
        """Cancel a job whose number never came.

        A slurmctld that had stopped answering may still find the submission in its inbox, so one
        look is not enough.
        """
        for _ in range(_LATE_COMER_LOOKS):
            if await self.cancel(session_id):
                return
            await asyncio.sleep(_LATE_COMER_SECONDS)

    async def _await_end(self, job_id: str) -> None:
        """Wait until the job has left its node: until then its GPUs are not free."""
        deadline = asyncio.get_running_loop().time() + self._end_timeout
        over = (JobState.ENDED, JobState.GONE)
        while (await self.look(job_id, max_age=0)).state not in over:
            if asyncio.get_running_loop().time() > deadline:
                self._log.warning(
                    "Job %s of %s is cancelled, but still on its node after %g s",
                    job_id,
                    self._name,
                    self._end_timeout,
                )
                return
            await asyncio.sleep(_ENDING_INTERVAL)

    async def _end_requeued(self, session_id: str, job_id: str) -> str | None:
        """Cancel a job that somebody put back into the queue; ``None`` if it is not done yet."""
        try:
            await self._cancel_once(session_id, job_id)
        except SlurmError as error:
            self._log.warning("Job %s is not cancelled yet: %s", job_id, error.detail)
            return None
        self._listener.note_end(Ending.REQUEUED, None)
        self.forget(job_id)
        self.exit_status = 1
        return endings.requeued(job_id)

    async def _cancel_once(self, session_id: str, job_id: str) -> list[int]:
        client = self._slurm.client
        try:
            return await client.cancel(self._username, session_id)
        except AccountUnavailable:
            if not (client.operator and job_id):
                raise
        return await client.end(self._username, session_id, int(job_id))

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
