"""A session as a Slurm job: the life of the job."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator
from typing import Any

from traitlets import Unicode

from spawner import callback, progress
from spawner.errors import SessionEnded, SlurmError, SpawnerError, SubmissionRefused
from spawner.options_page import OptionsPage
from spawner.policy import AcceptedRequest
from spawner.script import SessionProgram, render
from spawner.slurm.records import Job, JobState

callback.install()

_STARTING_INTERVAL = 0.5
_ENDING_INTERVAL = 0.2
_LAST_WORD_SECONDS = 5.0
_CANCEL_RETRY_SECONDS = (1, 2, 5, 10, 20, 30)
_LATE_COMER_LOOKS = 5
_LATE_COMER_SECONDS = 2.0
_NOT_IN_A_JOB_NAME = re.compile(r"[^A-Za-z0-9_.@-]")


class GpuSlurmSpawner(OptionsPage):
    """Starts JupyterLab in a Slurm job with a number of GPUs on one node, as the user."""

    session_id = Unicode()
    """Marks the job as this session's; chosen before the submission, so that a job whose number
    never reached us can still be found and cancelled."""

    _job: Job | None = None
    _exit_status: int | None = None
    _port_awaited: "asyncio.Future[int] | None" = None

    # --- the life of the job ---

    async def start(self) -> str:
        """Submit the job and wait until its server listens; return the server's address."""
        self._endings.pop(self._log_name, None)
        self.ip, self.port = "0.0.0.0", 0  # noqa: S104  where the session listens, on its node
        self._job = None
        try:
            request = await self._accepted()
            await self._submit(request)
            port = await self._await_port()
            return f"http://{await self._address()}:{port}"
        except SpawnerError as error:
            if isinstance(error, SessionEnded):
                self._endings[self._log_name] = str(error)
            raise self._shown(error) from error
        finally:
            self._port_awaited = None

    async def _submit(self, request: AcceptedRequest) -> None:
        name = f"{self.hub_mark}-{_NOT_IN_A_JOB_NAME.sub('_', self.user.name)}"
        environment = self.get_env()
        environment["SLURM_CONF"] = self.slurm_conf
        environment["PORTAL_PORT_CALLBACK_URL"] = self.hub.api_url.rstrip("/") + callback.PATH
        program = SessionProgram(
            self.session_python, {**self.session_input, "environment": environment}
        )
        script = render(name, request, program)
        self.session_id = secrets.token_hex(16)
        self._port_awaited = asyncio.get_running_loop().create_future()
        self._save_state()
        try:
            number = await self._slurm.client.submit(self.user.name, self.session_id, script)
        except SubmissionRefused:
            self.session_id = ""  # there is no job to look for
            raise
        self.job_id = str(number)
        self._save_state()
        self.log.info("Job %s is the session of %s", self.job_id, self._log_name)

    async def _await_port(self) -> int:
        """Wait for the session's own word; meanwhile see how its job is."""
        assert self._port_awaited is not None  # noqa: S101  made by _submit
        launched_at: float | None = None
        loop = asyncio.get_running_loop()
        while True:
            done, _ = await asyncio.wait({self._port_awaited}, timeout=_STARTING_INTERVAL)
            if done:
                return self._port_awaited.result()
            job = await self._look()
            if job.state.is_over:
                ending = await self._record_end(job)
                raise SessionEnded(f"The session could not be started. {ending}")
            if job.state is JobState.RUNNING:
                launched_at = launched_at or loop.time()
                if loop.time() - launched_at > self.launch_timeout:
                    raise SessionEnded(
                        f"Job {self.job_id} runs on {job.node}, but its server did not answer "
                        f"within {self.launch_timeout:g} seconds."
                    )

    async def _address(self) -> str:
        """Return where the job's node is reached, as Slurm says."""
        while (job := await self._look(max_age=0)).node is None:
            # A question that failed says nothing: the server listens, so its node will be known.
            if job.state.is_over:
                ending = await self._record_end(job)
                raise SessionEnded(f"The session ended while it started. {ending}")
            await asyncio.sleep(_STARTING_INTERVAL)
        cluster = await self._slurm.nodes.cluster()
        return cluster.address_of(job.node) or job.node

    async def _look(self, max_age: float | None = None) -> Job:
        self._job = await self._slurm.jobs.job(int(self.job_id), max_age=max_age)
        return self._job

    async def _record_end(self, job: Job) -> str:
        """Remember that the job is over; return how it ended, in words.

        Until the job has left its node Slurm says "completing"; its last word is worth a moment.
        """
        deadline = asyncio.get_running_loop().time() + _LAST_WORD_SECONDS
        while job.state is JobState.COMPLETING and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_ENDING_INTERVAL)
            job = await self._look(max_age=0)
        ending = progress.ending(job)
        self.log.info("The session of %s is over: %s", self._log_name, ending)
        self._slurm.jobs.forget(job.job_id)
        self._exit_status = 0 if job.slurm_state in ("COMPLETED", "CANCELLED") else 1
        return ending

    def take_port(self, port: int) -> bool:
        """Take the port from the session; ``False`` when none is awaited."""
        if self._port_awaited is None or self._port_awaited.done():
            return False
        self._port_awaited.set_result(port)
        return True

    async def poll(self) -> int | None:
        """Return ``None`` while the job holds its resources, or Slurm does not say otherwise."""
        if self._exit_status is not None or not (self.session_id or self.job_id):
            return self._exit_status or 0
        if not self.job_id:
            # Submitted, perhaps: stop() will find out.
            return None
        job = await self._look()
        if not job.state.is_over:
            return None
        ending = await self._record_end(job)
        self._endings[self._log_name] = f"Your last session has ended. {ending}"
        return self._exit_status

    async def stop(self, now: bool = False) -> None:
        """Cancel the job; return when it has left its node, or at once if ``now``.

        While Slurm does not answer this goes on trying: JupyterHub forgets the session when this
        returns, and a forgotten job would keep its GPUs.
        """
        if not self.session_id:
            return
        if not self.job_id:
            await self._cancel_late_comer()
            return
        await self._cancel()
        if not now:
            await self._await_end()
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
        attempt = 0
        while True:
            try:
                return await self._slurm.client.cancel(self.user.name, self.session_id)
            except SlurmError as error:
                delay = _CANCEL_RETRY_SECONDS[min(attempt, len(_CANCEL_RETRY_SECONDS) - 1)]
                self.log.warning(
                    "Job %s of %s is not cancelled yet, next try in %d s: %s",
                    self.job_id,
                    self._log_name,
                    delay,
                    error.detail,
                )
                await asyncio.sleep(delay)
                attempt += 1

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the spawn page Slurm's state and reason, whenever they change."""
        said = ""
        while True:
            if self._job is None:
                message, done = "Submitting the job to Slurm.", 5
            else:
                message, done = progress.describe(self._job), progress.percent(self._job)
            if message != said:
                said = message
                yield {"message": message, "progress": done}
            await asyncio.sleep(_STARTING_INTERVAL)

    # --- what is kept ---

    def get_state(self) -> dict[str, Any]:
        """Return what must survive a restart of the hub."""
        state: dict[str, Any] = super().get_state()
        state.pop("job_status", None)
        if self.session_id:
            state["session_id"] = self.session_id
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what `get_state` gave."""
        super().load_state(state)
        self.session_id = state.get("session_id", "")

    def clear_state(self) -> None:
        """Forget the job."""
        super().clear_state()
        self.session_id = ""
        self._exit_status = None

    def _save_state(self) -> None:
        self.orm_spawner.state = self.get_state()
        self.db.commit()
