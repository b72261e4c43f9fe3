"""A session as a Slurm job: the life of the job.

Glossary. A *session* is what the user asked for once; it has a random name, chosen and saved before
anything is submitted. Its *job* is what Slurm makes of it, and has a number. An *interrupted* start
is one whose hub ended while it was under way: the job may be there, and is taken over.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from jupyterhub import orm

from jupyterhub_gpu_slurm import hub_api, metrics, progress
from jupyterhub_gpu_slurm.errors import (
    AccountUnavailable,
    SessionEnded,
    SlurmError,
    SpawnerError,
    SubmissionRefused,
)
from jupyterhub_gpu_slurm.observation import Ending, ending_of
from jupyterhub_gpu_slurm.observed import Observed
from jupyterhub_gpu_slurm.policy import AcceptedRequest
from jupyterhub_gpu_slurm.script import SessionProgram, job_name, render
from jupyterhub_gpu_slurm.slurm.records import Job, JobState

T = TypeVar("T")

# JupyterHub puts its API together after it has imported its spawner.
hub_api.install()

_STARTING_INTERVAL = 0.5
_ENDING_INTERVAL = 0.2
_LAST_WORD_SECONDS = 2.0
_SHORT_WAIT_SECONDS = 60.0
# How often a user is asked for whom sudo does not let the hub act as.
_ACCOUNT_TRIES = 3
_RETRY_SECONDS = (1, 2, 5, 10, 20, 30)
_LATE_COMER_LOOKS = 5
_LATE_COMER_SECONDS = 2.0


class GpuSlurmSpawner(Observed):
    """Starts JupyterLab in a Slurm job with a number of GPUs on one node, as the user."""

    _job: Job | None = None
    _submitted_at: datetime | None = None
    _exit_status: int | None = None
    _port_awaited: "asyncio.Future[int] | None" = None

    # --- the start ---

    async def start(self) -> str:
        """Submit the job and wait until its server listens; return the server's address."""
        self._endings.pop(self._log_name, None)
        self.ip, self.port = "0.0.0.0", 0  # noqa: S104  where the session listens, on its node
        self._job = None
        self._submitted_at = datetime.now(UTC)
        self._begin_observation()
        try:
            if not await self._take_over():
                await self._submit(await self._accepted())
            port = await self._await_port()
            # Slurm starts jobs once in a second: many sessions speak up at the same moment.
            await self._turns.wait()
            scheme = "https" if self.internal_ssl else "http"
            url = f"{scheme}://{await self._address()}:{port}"
            self.is_ready = True
            self._note_ready()
        except SpawnerError as error:
            metrics.START_FAILURES.labels(error.reason).inc()
            if isinstance(error, SessionEnded):
                self._endings[self._log_name] = str(error)
            raise self._shown(error) from error
        else:
            return url
        finally:
            self._port_awaited = None

    async def _submit(self, request: AcceptedRequest) -> None:
        environment = self.get_env()
        environment["SLURM_CONF"] = self.slurm_conf
        environment["PORTAL_PORT_CALLBACK_URL"] = self.hub.api_url.rstrip("/") + hub_api.PORT_PATH
        orders = {**self.session_input, "environment": environment}
        if request.image is not None:
            orders["image"] = self.session_images[request.image]
        program = SessionProgram(
            self.session_python, {**orders, **await self._certificate(request)}
        )
        name = job_name(self.hub_mark, self.user.name, self.name)
        script = render(name, request, program)
        self.session_id, self.session_options = secrets.token_hex(16), self.user_options
        self.token_id = orm.APIToken.find(self.user.db, self.api_token).id
        self.client_secret = self.orm_spawner.oauth_client.secret
        self._port_awaited = asyncio.get_running_loop().create_future()
        self._save_state()
        self._note_submission()
        try:
            number = await self._slurm.client.submit(self.user.name, self.session_id, script)
        except (AccountUnavailable, SubmissionRefused):
            self.session_id = ""  # there is no job to look for
            raise
        self.job_id = str(number)
        self._save_state()
        self.log.info("Job %s is the session of %s", self.job_id, self._log_name)

    async def _take_over(self) -> bool:
        """Go on with the job of an interrupted start, if it is there and still what is wanted."""
        if not self._is_interrupted:
            return False
        self._is_interrupted = False
        self._port_awaited = asyncio.get_running_loop().create_future()
        if self.session_options != self.user_options:
            await self._cancel()
            self._forget_session()
            return False
        sessions = await self._insist(lambda: self._slurm.client.sessions(self.user.name))
        numbers = [number for number, session in sessions.items() if session == self.session_id]
        if not numbers:
            self._forget_session()
            return False
        self.job_id = str(numbers[0])
        # The session holds the token and secret of its first start, which stay valid.
        self.orm_spawner.oauth_client.secret = self.client_secret
        self.will_resume = False
        self._save_state()
        # It may have said so just now, while Slurm was asked.
        if self.session_port and not self._port_awaited.done():
            self._port_awaited.set_result(self.session_port)
        self.log.info("Job %s of %s is taken over", self.job_id, self._log_name)
        return True

    async def _await_port(self) -> int:
        """Wait for the session's own word, as long as its job is well."""
        assert self._port_awaited is not None  # noqa: S101  made by _submit or _take_over
        watching = asyncio.create_task(self._watch_start())
        try:
            either: set[asyncio.Future[Any]] = {self._port_awaited, watching}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not self._port_awaited.done():
                watching.result()
            return self._port_awaited.result()
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError, SpawnerError):
                await watching

    async def _watch_start(self) -> None:
        """Look after a starting job; raises `SessionEnded` when it will not become a session."""
        loop = asyncio.get_running_loop()
        asked_at, launched_at = loop.time(), None
        while True:
            waited = loop.time() - asked_at
            is_hurried = launched_at is not None or waited < _SHORT_WAIT_SECONDS
            pace = self._slurm.jobs.pace
            job = await self._look(max_age=pace.busy if is_hurried else pace.waiting)
            if job.state.is_over:
                ending = await self._record_end(job)
                raise SessionEnded(
                    f"The session could not be started. {ending}", log_lines=await self._log_tail()
                )
            if job.state is JobState.RUNNING:
                launched_at = launched_at or loop.time()
                if loop.time() - launched_at > self.launch_timeout:
                    raise SessionEnded(
                        f"Job {self.job_id} runs on {job.node}, but its server did not answer "
                        f"within {self.launch_timeout:g} seconds, so it was cancelled.",
                        log_lines=await self._log_tail(),
                    )
            elif waited > self.queue_timeout:
                raise SessionEnded(
                    f"Job {self.job_id} waited in the queue for "
                    f"{self.queue_timeout / 3600:.3g} hours and was cancelled. Choose fewer GPUs, "
                    "or another partition."
                )
            await asyncio.sleep(_STARTING_INTERVAL)

    async def _address(self) -> str:
        """Return where the job's node is reached, as Slurm says."""
        job = await self._look(max_age=self._slurm.jobs.pace.busy)
        while job.node is None:
            # A question that failed says nothing: the server listens, so its node will be known.
            if job.state.is_over:
                ending = await self._record_end(job)
                raise SessionEnded(f"The session ended while it started. {ending}")
            job = await self._look(max_age=0)
            if job.node is None:
                await asyncio.sleep(_STARTING_INTERVAL)
        cluster = await self._slurm.nodes.cluster()
        return cluster.address_of(job.node) or job.node

    async def _look(self, max_age: float | None = None) -> Job:
        self._job = await self._slurm.jobs.job(int(self.job_id), max_age=max_age)
        self._note_job(self._job)
        return self._job

    async def _log_tail(self) -> tuple[str, ...]:
        """Return the end of the job's own words, where they can be had."""
        try:
            return tuple(await self._slurm.client.log_tail(self.user.name, int(self.job_id)))
        except SlurmError as error:
            self.log.warning("No log of job %s: %s", self.job_id, error.detail)
            return ()

    # --- the end ---

    async def _record_end(self, job: Job) -> str:
        """Remember that the job is over; return how it ended, in words.

        Until the job has left its node Slurm says "completing"; its last word is worth a moment.
        """
        deadline = asyncio.get_running_loop().time() + _LAST_WORD_SECONDS
        while job.state is JobState.COMPLETING and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_ENDING_INTERVAL)
            job = await self._look(max_age=0)
        self._note_end(ending_of(job), job)
        ending = progress.ending(job)
        self.log.info("The session of %s is over: %s", self._log_name, ending)
        self._slurm.jobs.forget(job.job_id)
        self._exit_status = 0 if job.slurm_state in ("COMPLETED", "CANCELLED") else 1
        return ending

    def take_port(self, port: int) -> bool:
        """Take the port from the session; ``False`` when none is awaited."""
        if not self._is_interrupted:
            if self._port_awaited is None or self._port_awaited.done():
                return False
            self._port_awaited.set_result(port)
        # The session says it once: a hub that ends now must not have forgotten it.
        self.session_port = port
        self._save_state()
        return True

    async def poll(self) -> int | None:
        """Return ``None`` while the job holds its resources, or Slurm does not say otherwise."""
        if self._is_interrupted:
            # Not a server yet: JupyterHub is to start it again, which takes its job over.
            return 1
        if self._exit_status is not None or not (self.session_id or self.job_id):
            return self._exit_status or 0
        if not self.job_id:
            # Submitted, perhaps: stop() will find out.
            return None
        job = await self._look()
        if self.is_ready and job.state is JobState.PENDING:
            return await self._end_requeued(job)
        if not job.state.is_over:
            return None
        ending = await self._record_end(job)
        self._endings[self._log_name] = f"Your last session has ended. {ending}"
        return self._exit_status

    async def _end_requeued(self, job: Job) -> int | None:
        """Cancel a job that somebody put back into the queue: what it was is lost."""
        try:
            await self._cancel_once()
        except SlurmError as error:
            self.log.warning("Job %s is not cancelled yet: %s", self.job_id, error.detail)
            return None
        self._note_end(Ending.REQUEUED, None)
        self._slurm.jobs.forget(job.job_id)
        self._exit_status = 1
        self._endings[self._log_name] = (
            f"Your last session has ended. Job {job.job_id} was put back into Slurm's queue, by an "
            "administrator or because its node failed, and was cancelled."
        )
        return self._exit_status

    async def stop(self, now: bool = False) -> None:
        """Cancel the job; return when it has left its node, or at once if ``now``.

        While Slurm does not answer this goes on trying: JupyterHub forgets the session when this
        returns, and a forgotten job would keep its GPUs. Where nobody lets the hub act for the
        user, the job is left to the keeper.
        """
        if not self.session_id:
            return
        try:
            if not self.job_id:
                await self._cancel_late_comer()
            else:
                await self._cancel()
                if not now:
                    await self._await_end()
        except AccountUnavailable as error:
            self.log.error(
                "Job %s of %s may go on for now, the keeper is to end it: %s",
                self.job_id,
                self._log_name,
                error.detail,
            )
        self._note_stop(self._job)
        if self.job_id:
            self._slurm.jobs.forget(int(self.job_id))

    async def _cancel_late_comer(self) -> None:
        """Cancel a job whose number never came.

        A slurmctld that had stopped answering may still find the submission in its inbox, so one
        look is not enough.
        """
        for _ in range(_LATE_COMER_LOOKS):
            if await self._cancel():
                return
            await asyncio.sleep(_LATE_COMER_SECONDS)

    async def _await_end(self) -> None:
        """Wait until the job has left its node: until then its GPUs are not free."""
        deadline = asyncio.get_running_loop().time() + self.end_timeout
        while (await self._look(max_age=0)).state not in (JobState.ENDED, JobState.GONE):
            if asyncio.get_running_loop().time() > deadline:
                self.log.warning(
                    "Job %s of %s is cancelled, but still on its node after %g s",
                    self.job_id,
                    self._log_name,
                    self.end_timeout,
                )
                return
            await asyncio.sleep(_ENDING_INTERVAL)

    async def _cancel(self) -> list[int]:
        """Cancel the session's jobs, once Slurm takes the order; return their numbers."""
        return await self._insist(self._cancel_once)

    async def _cancel_once(self) -> list[int]:
        client = self._slurm.client
        try:
            return await client.cancel(self.user.name, self.session_id)
        except AccountUnavailable:
            if not (self.slurm_operator and self.job_id):
                raise
        operator, job_id = self.slurm_operator, int(self.job_id)
        return await client.end(operator, self.user.name, self.session_id, job_id)

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
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
                self.log.warning(
                    "Slurm does not take care of job %s of %s yet, next try in %d s: %s",
                    self.job_id,
                    self._log_name,
                    delay,
                    error.detail,
                )
                await asyncio.sleep(delay)
                attempt += 1

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the spawn page how the job is, whenever that changes."""
        said: dict[str, Any] = {}
        while True:
            event = progress.event(self._job, self._submitted_at, datetime.now(UTC))
            if event != said:
                said = event
                yield event
            await asyncio.sleep(_STARTING_INTERVAL)

    def clear_state(self) -> None:
        """Forget the session and how it ended."""
        super().clear_state()
        self._exit_status = None
        self._idle_report = None
