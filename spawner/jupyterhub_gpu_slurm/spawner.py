"""The spawner that JupyterHub calls, composed of the parts of a session.

Glossary. A *session* is what the user asked for once; it has a random id, chosen and saved before
anything is submitted. Its *job* is what Slurm makes of it, and has a number. An *interrupted* start
is one whose hub ended while it was under way: the job may be there, and is taken over.
"""

import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

from jupyterhub import orm
from traitlets import default

from jupyterhub_gpu_slurm import hub_api, inherited, metrics, spawn_exception, start_limiter
from jupyterhub_gpu_slurm.errors import (
    AccountUnavailable,
    LauncherUnavailable,
    Misconfigured,
    SessionEnded,
    SpawnerError,
    SubmissionRefused,
)
from jupyterhub_gpu_slurm.inherited import KnownOptions
from jupyterhub_gpu_slurm.metrics import SessionSample
from jupyterhub_gpu_slurm.options.options_form import OptionsForm
from jupyterhub_gpu_slurm.options.other_sessions import OtherSessions
from jupyterhub_gpu_slurm.options.policy import AcceptedRequest
from jupyterhub_gpu_slurm.options.request import parse, single_values
from jupyterhub_gpu_slurm.options.session_options import SessionOptions
from jupyterhub_gpu_slurm.outlook.availability import Availability
from jupyterhub_gpu_slurm.outlook.forecast import Forecast
from jupyterhub_gpu_slurm.resources import Resources
from jupyterhub_gpu_slurm.session import endings, idle
from jupyterhub_gpu_slurm.session.certificates import CertificateIssuer
from jupyterhub_gpu_slurm.session.deadline import PossibleExtension, StartLimits
from jupyterhub_gpu_slurm.session.idle import IdleTracker
from jupyterhub_gpu_slurm.session.job import SessionJob
from jupyterhub_gpu_slurm.session.record import SessionRecord
from jupyterhub_gpu_slurm.session.reporter import SessionReporter
from jupyterhub_gpu_slurm.session.script import SessionProgram, job_name, render, site_options
from jupyterhub_gpu_slurm.session.start import SessionStart
from jupyterhub_gpu_slurm.session.state import SessionState
from jupyterhub_gpu_slurm.session.time_extension import TimeExtension
from jupyterhub_gpu_slurm.traits import SpawnerTraits


class GpuSlurmSpawner(SpawnerTraits):
    """Starts JupyterLab in a Slurm job with a number of GPUs on one node, as the user."""

    # Why the last session of a server ended, for its form. Not on the instance: JupyterHub makes
    # a new spawner after each stop.
    _endings: ClassVar[dict[str, str]] = {}
    _all: ClassVar["WeakSet[GpuSlurmSpawner]"] = WeakSet()

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        GpuSlurmSpawner._all.add(self)

    # --- its parts, each made when it is first needed ---

    @cached_property
    def record(self) -> SessionRecord:
        """What survives the hub, beside the job's number (``job_id``)."""
        return SessionRecord(self._write_state, self._revoke_token)

    @property
    def session(self) -> SessionState:
        """What the record says now."""
        return self.record.state

    @cached_property
    def reporter(self) -> SessionReporter:
        """What reports the events of its job."""
        return SessionReporter(
            self.user.name, self.name, self.record, self.session_observer, self.log
        )

    @cached_property
    def job(self) -> SessionJob:
        """Its job at Slurm."""
        return SessionJob(
            self.slurm,
            self.user.name,
            self._log_name,
            self.end_timeout,
            self.reporter,
            self.log,
        )

    @cached_property
    def session_start(self) -> SessionStart:
        """Its start, until it says where it listens."""
        return SessionStart(self.slurm, self.user.name, self.job, self._start_limits, self.log)

    def _start_limits(self) -> StartLimits:
        return StartLimits(self.launch_timeout, self.queue_timeout)

    @cached_property
    def session_options(self) -> SessionOptions:
        """What its user can ask for."""
        others = OtherSessions(self.user, self.name, self.slurm.client)
        return SessionOptions(
            self.slurm, self.user.name, lambda: self._site_policy, self._hub_groups, others
        )

    @cached_property
    def form(self) -> OptionsForm:
        """What its user is asked before it starts."""
        api_url = f"{self.hub.base_url}api{hub_api.path_for_form(self.user.name, self.name)}"
        return OptionsForm(
            self.session_options, self.user.name, api_url, self.cluster_interval, self.log
        )

    @cached_property
    def time_extension(self) -> TimeExtension:
        """Its time, which can be extended."""
        return TimeExtension(
            self.slurm,
            self.user.name,
            self.record,
            lambda: int(self.job_id),
            self.session_options.limits,
            self._extension_rules,
            self.log,
        )

    @cached_property
    def certificate_issuer(self) -> CertificateIssuer:
        """Who makes its certificate, where the hub has `internal_ssl`."""
        return CertificateIssuer(
            Path(self.internal_certs_location),
            Path(self.internal_trust_bundles["notebooks-ca"]),
            self._longest_delay,
        )

    @cached_property
    def idle_tracker(self) -> IdleTracker:
        """For how long nobody has used it."""
        return IdleTracker()

    # --- the form ---

    @default("options_form")
    def _default_options_form(self) -> Any:
        return type(self).render_form

    @default("options_from_form")
    def _default_options_from_form(self) -> Any:
        return self.read_form

    async def render_form(self) -> str:
        """Return the options form for this user: what JupyterHub calls ``options_form``."""
        ending = self._endings.get(self._log_name, "")
        return await self.form.page(self.orm_spawner.user_options or {}, ending)

    def read_form(self, fields: Mapping[str, list[str]]) -> dict[str, int | float | str]:
        """Read the posted form, strictly: what JupyterHub calls ``options_from_form``."""
        try:
            return parse(single_values(fields)).as_json()
        except SpawnerError as error:
            raise spawn_exception.of_error(error) from error

    def options_from_query(self, query: Mapping[str, list[str]]) -> dict[str, Any]:
        """Let a link fill in the form; it never starts a job.

        JupyterHub asks here what to start when a link has options. Raising makes it show the form,
        with these words above it.
        """
        try:
            self.form.fill_in(query)
        except SpawnerError as error:
            raise spawn_exception.of_error(error) from error
        raise spawn_exception.of_link()

    async def availability(self) -> tuple[Availability, ...]:
        """Return what the partitions that are open to the user have free.

        Raises `SlurmError`, `OverLimit`.
        """
        return await self.session_options.availability()

    async def forecast(self, fields: Mapping[str, list[str]]) -> Forecast:
        """Return when what a form asks for would start. Nothing is reserved or submitted.

        Raises `BadOption`, `SlurmError`.
        """
        program = SessionProgram(self.session_python, {})
        return await self.session_options.forecast(
            fields, lambda request: self._script(request, program)
        )

    def _apply_overrides(self, spawner_override: dict[str, Any]) -> None:
        """Refuse what would have no effect: of a function's answer that is not known before."""
        known = KnownOptions.of(type(self))
        if found := inherited.override_mistakes(spawner_override, known):
            error = Misconfigured(
                "The portal's configuration has a mistake that keeps your session from starting; "
                "tell the administrators.",
                detail=f"group_overrides: {' '.join(found)}",
            )
            raise spawn_exception.of_error(error)
        super()._apply_overrides(spawner_override)

    def _hub_groups(self) -> set[str]:
        """Return those that the directory named at the login: JupyterHub's record of its user."""
        return {group.name for group in self.user.groups}

    # --- the start ---

    async def start(self) -> str:
        """Submit the job and wait until its server listens; return the server's address."""
        self._endings.pop(self._log_name, None)
        self.ip, self.port = "0.0.0.0", 0  # noqa: S104  where the session listens, on its node
        self.session_start.begin()
        self.reporter.begin()
        try:
            if not await self._take_over():
                await self._submit(
                    await self.session_options.grant(self.user_options, self._reserve)
                )
            port = await self.session_start.await_port(self.job_id)
            # Slurm starts jobs once in a second: many sessions speak up at the same moment.
            await start_limiter.LIMITER.wait()
            scheme = "https" if self.internal_ssl else "http"
            address = await self.session_start.address(self.job_id)
            url = f"{scheme}://{f'[{address}]' if ':' in address else address}:{port}"
            self.record.note(is_ready=True)
            self.reporter.note_ready()
        except SpawnerError as error:
            metrics.START_FAILURES.labels(error.reason).inc()
            if isinstance(error, SessionEnded):
                self._endings[self._log_name] = str(error)
            raise spawn_exception.of_error(error) from error
        else:
            return url
        finally:
            self.session_start.end()

    def _reserve(self, request: AcceptedRequest, groups: set[str]) -> None:
        self.record.note(gpus=request.resources.gpus, groups=tuple(sorted(groups)))

    async def _submit(self, request: AcceptedRequest) -> None:
        program = await self._program(request)
        script, session_input = self._script(request, program), program.input_text()
        self.session_start.expect_port()
        self.record.save(
            id=secrets.token_hex(16),
            options=self.user_options,
            asked_at=datetime.now(UTC).timestamp(),
            token_id=orm.APIToken.find(self.user.db, self.api_token).id,
            client_secret=self.orm_spawner.oauth_client.secret,
        )
        self.reporter.note_submission()
        try:
            self.job_id = await self.job.submit(self.session.id, script, session_input)
        except (AccountUnavailable, LauncherUnavailable, SubmissionRefused):
            self.record.note(id="")  # there is no job to look for
            raise
        self.record.save()
        self.log.info("Job %s is the session of %s", self.job_id, self._log_name)

    def _script(self, request: AcceptedRequest, program: SessionProgram) -> str:
        name = job_name(self.hub_mark, self.user.name, self.name)
        return render(name, request, program, site_options(self.req_options))

    async def _program(self, request: AcceptedRequest) -> SessionProgram:
        """Return what the job runs, and what it is told."""
        environment = self.get_env()
        # As the session is told, which `hub_connect_url` and `environment` may change.
        api_url = environment["JUPYTERHUB_API_URL"].rstrip("/")
        environment["PORTAL_PORT_CALLBACK_URL"] = f"{api_url}{hub_api.PORT_PATH}"
        told = {**self.session_input, "environment": environment}
        if request.image is not None:
            told["image"] = self.session_images[request.image]
        if self.internal_ssl:
            cluster = await self.slurm.nodes.cluster()
            told["certificate"] = self.certificate_issuer.issue(
                self.user.name, cluster, request.partition, request.time
            )
        return SessionProgram(self.session_python, told)

    async def _take_over(self) -> bool:
        """Go on with the job of an interrupted start, if it is there and still what is wanted."""
        if not self.record.is_interrupted:
            return False
        self.record.is_interrupted = False
        is_wanted = self.session.options == self.user_options
        self.job_id = await self.session_start.take_over(
            self.session.id, self.job_id, is_wanted=is_wanted
        )
        if not self.job_id:
            self._forget_session()
            return False
        # The session holds the token and secret of its first start, which stay valid.
        self.orm_spawner.oauth_client.secret = self.session.client_secret
        self.will_resume = False
        self.record.save()
        self.session_start.resume(self.session.asked_at)
        # It may have said so just now, while Slurm was asked.
        if self.session.port:
            self.session_start.take_port(self.session.port)
        self.log.info("Job %s of %s is taken over", self.job_id, self._log_name)
        return True

    def take_port(self, port: int) -> bool:
        """Take the port from the session; ``False`` when none is awaited."""
        if not (self.record.is_interrupted or self.session_start.take_port(port)):
            return False
        # The session says it once.
        self.record.save(port=port)
        return True

    def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the spawn page how the job is, whenever that changes."""
        return self.session_start.progress(
            # What is free is not the reservation's.
            lambda: 0 if self._has_reservation() else self.held_gpus or 0,
            self.user_options.get("gpu_type"),
            self.user_options.get("constraint") or None,
        )

    def _has_reservation(self) -> bool:
        site = self._allowance(self.session.groups)
        return bool(self.user_options.get("reservation") or site.reservation)

    async def create_certs(self) -> dict[str, str]:
        """Make no files: JupyterHub's would be one for all servers of a user, and stay."""
        return {}

    # --- while it runs ---

    @property
    def has_job(self) -> bool:
        """Whether there is a job whose deadline can be asked for."""
        return bool(self.session.id and self.job_id)

    async def possible_extension(self) -> PossibleExtension:
        """Say by how much the session can be extended now; see `TimeExtension`."""
        return await self.time_extension.possible_extension()

    async def extend(self, minutes: int) -> PossibleExtension:
        """Add minutes to the session's limit; see `TimeExtension.extend`."""
        return await self.time_extension.extend(minutes)

    async def idle_limit(self) -> timedelta | None:
        """Return for how long the user's sessions may be unused; ``None``: without a limit."""
        # A directory that does not know the user just now takes nothing from the session.
        groups = await self.session_options.groups() | set(self.session.groups)
        return idle.limit_for(self.idle_minutes, self.group_idle_minutes, groups)

    async def take_idle(self, seconds: int) -> dict[str, int | None]:
        """Take the session's word for how long nobody has used it; return what holds for it."""
        limit = await self.idle_limit()
        self.idle_tracker.hear(seconds, limit, datetime.now(UTC))
        return idle.limits_as_json(limit, self.idle_warning_minutes)

    def note_unused(self) -> bool:
        """Remember why the session is about to end; ``False`` if it is in use again."""
        report = self.idle_tracker.unused(datetime.now(UTC))
        self.reporter.ends_unused = report is not None
        if report is None:
            return False
        self._endings[self._log_name] = endings.unused(report.limit or report.idle)
        self.log.info(
            "The session of %s has not been used for %d s and ends",
            self._log_name,
            report.idle.total_seconds(),
        )
        return True

    def note_stopper(self, name: str) -> None:
        """Remember who is about to stop the session."""
        self.reporter.is_stopped_by_other = name != self.user.name

    async def poll(self) -> int | None:
        """Return ``None`` while the job holds its resources, or Slurm does not say otherwise."""
        if self.record.is_interrupted:
            # Not a server yet: JupyterHub is to start it again, which takes its job over.
            return 1
        # A job without a session's id is another spawner's, which this one has taken the place of.
        if self.job.exit_status is not None or not self.session.id:
            return self.job.exit_status or 0
        if not self.job_id:
            # Submitted, perhaps: stop() will find out.
            return None
        ending = await self.job.check(self.session.id, self.job_id, is_ready=self.session.is_ready)
        if ending is None:
            return None
        self._endings[self._log_name] = endings.last_session(ending)
        return self.job.exit_status

    # --- the end ---

    async def stop(self, now: bool = False) -> None:
        """Cancel the job; return when it has left its node, or at once if ``now``.

        While Slurm does not answer this goes on trying: JupyterHub forgets the session when this
        returns, and a forgotten job would keep its GPUs.
        """
        if not self.session.id:
            return
        await self.job.end(self.session.id, self.job_id, now=now)
        self.reporter.note_stop(self.job.last)

    @property
    def is_interrupted(self) -> bool:
        """Whether the hub ended during the start, which is to go on with its job."""
        return self.record.is_interrupted

    async def give_up(self) -> None:
        """End an interrupted start instead of going on with it; its job is cancelled.

        While Slurm does not answer this goes on trying.
        """
        await self.job.end(self.session.id, self.job_id, now=True)
        self.record.is_interrupted = False
        self.clear_state()
        self._write_state()
        self.log.info("The interrupted start of %s is given up: it was stopped", self._log_name)

    def delete_forever(self) -> None:
        """Forget a named server that its user has deleted."""
        self._endings.pop(self._log_name, None)

    # --- what survives the hub ---

    @property
    def held_gpus(self) -> int | None:
        """What the session was granted; ``None``: there is no session."""
        return self.session.gpus

    @property
    def held_resources(self) -> Resources | None:
        """What came with them; ``None``: there is no session."""
        return None if self.session.gpus is None else self._shape.resources(self.session.gpus)

    def get_state(self) -> dict[str, Any]:
        """Return what must survive a restart of the hub, and what other services go by."""
        state: dict[str, Any] = super().get_state()
        state.pop("job_status", None)
        return state | self.session.to_json() | self.idle_tracker.to_json(datetime.now(UTC))

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what `get_state` gave."""
        super().load_state(state)
        self.record.read(state)
        if self.record.is_interrupted:
            # So JupyterHub keeps the session's token when it notes that there is no server.
            self.will_resume = True

    def clear_state(self) -> None:
        """Forget the session, and revoke its token; an interrupted one waits to be taken over.

        JupyterHub calls this when a start has failed and when the session has stopped: both free
        what was held.
        """
        self.job.exit_status = None
        self.idle_tracker.report = None
        if self.record.is_interrupted:
            return
        super().clear_state()
        self._forget_session()

    def _forget_session(self) -> None:
        self.record.forget()
        self.job_id = ""
        self.will_resume = False

    def _write_state(self) -> None:
        self.orm_spawner.state = self.get_state()
        self.user.db.commit()

    def _revoke_token(self, number: int) -> None:
        token = self.user.db.get(orm.APIToken, number)
        # JupyterHub has revoked it before, and SQLite gives the number away again.
        if token is not None and token.user is self.user.orm_user:
            self.user.db.delete(token)
            self.user.db.commit()

    # --- what Prometheus asks ---

    @classmethod
    def samples(cls) -> Iterator[SessionSample]:
        """Give the sessions of this hub as they are now."""
        for spawner in list(cls._all):
            sample = spawner.sample()
            if sample is not None:
                yield sample

    def sample(self) -> SessionSample | None:
        """Return the session as it is now; ``None`` where there is none.

        JupyterHub makes a new spawner after each stop; the one before does not count.
        """
        is_current = self.user is not None and self.user.spawners.get(self.name) is self
        if not is_current:
            return None
        return self.reporter.sample(
            self.idle_tracker.use(timedelta(minutes=self.idle_gpu_minutes), datetime.now(UTC)),
            is_stopping=self.pending == "stop",
        )
