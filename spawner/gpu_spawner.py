"""A session as a Slurm job: what a user may ask for, and the life of the job."""

import asyncio
import contextlib
import grp
import os
import pwd
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

from jupyterhub.spawner import SpawnException
from traitlets import Unicode, default

from spawner import callback, options, progress
from spawner.errors import Refusal, SessionEnded, SlurmError, SpawnerError, SubmissionRefused
from spawner.form import render as form
from spawner.offer import limits_for
from spawner.policy import AcceptedRequest, Limits, accept
from spawner.script import SessionProgram, render
from spawner.slurm.records import Job, JobState
from spawner.traits import SlurmTraits

callback.install()

_STARTING_INTERVAL = 0.5
_ENDING_INTERVAL = 0.2
_LAST_WORD_SECONDS = 5.0
_CANCEL_RETRY_SECONDS = (1, 2, 5, 10, 20, 30)
_LATE_COMER_LOOKS = 5
_LATE_COMER_SECONDS = 2.0
_NOT_IN_A_JOB_NAME = re.compile(r"[^A-Za-z0-9_.@-]")


class GpuSlurmSpawner(SlurmTraits):
    """Starts JupyterLab in a Slurm job with a number of GPUs on one node, as the user."""

    session_id = Unicode()
    """Marks the job as this session's; chosen before the submission, so that a job whose number
    never reached us can still be found and cancelled."""

    # Why the last session of a server ended, for its form. Not on the instance: JupyterHub makes
    # a new spawner after each stop.
    _endings: ClassVar[dict[str, str]] = {}

    _job: Job | None = None
    _exit_status: int | None = None
    _port_awaited: "asyncio.Future[int] | None" = None
    _prefill: Mapping[str, str] | None = None

    @default("options_form")
    def _default_options_form(self) -> Any:
        return type(self).render_form

    @default("options_from_form")
    def _default_options_from_form(self) -> Any:
        return self.read_form

    # --- what the user may ask for, and asks for ---

    async def render_form(self) -> str:
        """Return the options form for this user: what JupyterHub calls ``options_form``."""
        try:
            limits = await self._limits()
        except SlurmError as error:
            self.log.warning("No options form for %s: %s", self.user.name, error.detail)
            return form.render_unavailable(str(error))
        prefill, self._prefill = self._prefill, None
        chosen = prefill if prefill is not None else self._last_options()
        note = self._endings.get(self._log_name, "")
        if prefill is not None:
            note = "The link that you followed filled in this form. Nothing has been started."
        return form.render(limits, self._shape, self._defaults, chosen, note)

    def read_form(self, fields: Mapping[str, list[str]]) -> dict[str, int | float | str]:
        """Read the posted form, strictly: what JupyterHub calls ``options_from_form``."""
        try:
            return options.parse(options.single_values(fields)).as_json()
        except SpawnerError as error:
            raise self._shown(error) from error

    def options_from_query(self, query: Mapping[str, list[str]]) -> dict[str, Any]:
        """Let a link fill in the form; it never starts a job.

        JupyterHub asks here what to start when a link has options. Raising makes it show the form,
        with these words above it.
        """
        try:
            self._prefill = options.single_values(query)
            options.parse(self._prefill)
        except SpawnerError as error:
            self._prefill = None
            raise self._shown(error) from error
        raise _for_the_page("", reason="link", log_message="a link filled in the form", status=200)

    async def _limits(self) -> Limits:
        cluster = await self._slurm.nodes.cluster()
        groups = await asyncio.to_thread(_unix_groups, self.user.name)
        return limits_for(groups, cluster, self._shape, self.default_partition or None)

    async def _accepted(self) -> AcceptedRequest:
        """Check the options once more: the REST API hands them over as they were sent."""
        request = options.parse(self.user_options)
        return accept(request, await self._limits(), self._shape, self._defaults)

    def _last_options(self) -> Mapping[str, str]:
        stored = self.orm_spawner.user_options or {}
        try:
            return {key: f"{value}" for key, value in options.parse(stored).as_json().items()}
        except Refusal:
            return {}

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

    def _shown(self, error: SpawnerError) -> SpawnException:
        """Turn one of our errors into JupyterHub's: its words, its label, its log line."""
        status = 400 if isinstance(error, Refusal) else 503
        return _for_the_page(
            str(error), reason=error.reason, log_message=error.detail, status=status
        )


def _for_the_page(words: str, *, reason: str, log_message: str, status: int) -> SpawnException:
    """Return JupyterHub's exception for a refused or failed start."""
    error = SpawnException(words, reason=reason, log_message=log_message, status_code=status)
    # Pages show this where it is set, and else the exception's own text, which is for logs.
    error.jupyterhub_message = words
    return error


def _unix_groups(username: str) -> list[str]:
    """Return the names of a user's Unix groups; none for a user whom the system does not know."""
    try:
        account = pwd.getpwnam(username)
    except KeyError:
        return []
    names = []
    for gid in os.getgrouplist(username, account.pw_gid):
        with contextlib.suppress(KeyError):
            names.append(grp.getgrgid(gid).gr_name)
    return names
