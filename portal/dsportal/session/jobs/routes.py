"""Routes for the user's jobs: those of the terminal and of other sessions too.

``GET /portal/jobs`` gives them, with those that ended lately, and which GPUs are free, but with
``?free=0``; with ``?anew=1`` Slurm is looked at for jobs that came and went unseen.
``POST /portal/jobs/cancel`` with ``{"job": "7"}`` cancels one.

However many pages are open, the cluster's service is asked once in a few seconds. Slurm itself is
asked for what the service does not know, and at most every 15 seconds: how a job ended that has
left the queue, and everything while the service does not answer or does not see this session.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from dsportal.session.jobs import words
from dsportal.session.jobs.records import LOST, UserJob, is_job_id
from dsportal.session.jobs.service import ClusterService, JobsSaid, NoView
from dsportal.session.jobs.slurm import SlurmPrograms, SlurmRefused

_SLURM_SECONDS = 15.0
_KEPT_SECONDS = 3600.0
_MOST_KEPT = 200
_A_CANCEL = 'The body must be {"job": "NUMBER"}, and nothing else.'


class Jobs:
    """Puts together what the service and Slurm say."""

    def __init__(
        self,
        service: ClusterService,
        slurm: SlurmPrograms,
        environment: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.slurm = slurm
        self._service = service
        self._session_job = environment.get("PORTAL_JOB_ID", "")
        # The user's default session, whose name those with names of their own begin with.
        self._default_name = environment.get("PORTAL_JOB_NAME", "").removesuffix(
            f".{environment.get('JUPYTERHUB_SERVER_NAME', '')}"
        )
        self._now = now
        self._asking = asyncio.Lock()
        self._live: dict[str, UserJob] = {}
        # Not in the service's list any more; Slurm has not said yet how they ended.
        self._gone: dict[str, UserJob] = {}
        self._ended: dict[str, UserJob] = {}
        self._source: str | None = None
        self._as_of: float | None = None
        self._slurm_asked_at = self._slurm_as_of = -float("inf")
        # This session was in the queue by then.
        self._began = now()
        self._is_slurm_wanted = True

    async def tell(self, is_anew: bool = False, *, with_free: bool = True) -> dict[str, Any]:
        """Give what the page shows; without the free GPUs where nobody sees it."""
        async with self._asking:
            await self._look(is_anew)
            free = await self._free_gpus() if with_free else None
        # Each is in one of them.
        jobs = [*self._live.values(), *self._gone.values(), *self._ended.values()]
        return {
            "now": self._now(),
            "as_of": self._as_of,
            "source": self._source,
            "every_seconds": round(_SLURM_SECONDS),
            "session_job": self._session_job,
            "jobs": [{**asdict(job), "is_over": job.is_over} for job in jobs],
            "free": free,
        }

    async def is_over(self, job_id: str) -> bool | None:
        """Say whether a job has ended; ``None`` where that is not known."""
        async with self._asking:
            await self._look(is_anew=False)
        if job_id in self._ended:
            return True
        return False if job_id in self._live or job_id in self._gone else None

    async def cancel(self, job_id: str) -> None:
        """Cancel a job of the user's, but not this session; raises `SlurmRefused`."""
        if job_id == self._session_job:
            raise SlurmRefused(words.ITS_OWN_SESSION)
        await self.slurm.cancel(job_id)
        # The service will know it seconds later than Slurm.
        self._is_slurm_wanted, self._slurm_asked_at = True, -float("inf")

    async def _free_gpus(self) -> list[dict[str, Any]] | None:
        try:
            return [asdict(gpus) for gpus in await self._service.free()]
        except NoView:
            return None

    async def _look(self, is_anew: bool) -> None:
        try:
            said = await self._service.jobs()
            is_heard = self._is_seen(said)
        except NoView:
            is_heard = False
        if is_heard:
            self._take(said)
        self._is_slurm_wanted |= is_anew or bool(self._gone)
        is_wanted = self._is_slurm_wanted or not is_heard
        # A clock that was set back makes it due, too.
        is_recent = 0 <= self._now() - self._slurm_asked_at < _SLURM_SECONDS
        if is_wanted and not is_recent:
            self._slurm_asked_at, self._is_slurm_wanted = self._now(), False
            await self._ask_slurm(is_for_all=not is_heard)
        self._forget_old()

    def _is_seen(self, said: JobsSaid) -> bool:
        """Whether the service sees this session: it does not where Slurm hides users' jobs."""
        is_older = said.as_of < self._began
        return (
            not self._session_job or is_older or self._session_job in {job.id for job in said.jobs}
        )

    def _take(self, said: JobsSaid) -> None:
        live = {job.id: job for job in said.jobs if not job.is_over}
        # The newer word counts: a job that ended may have been put back into the queue.
        if said.as_of > self._slurm_as_of:
            self._ended = without(self._ended, live)
        else:
            live = without(live, self._ended)
        self._gone |= without(self._live, live | self._ended)
        self._gone = {
            id_: job for id_, job in without(self._gone, live).items() if not job.is_group
        }
        self._live, self._as_of, self._source = live, said.as_of, "service"

    async def _ask_slurm(self, is_for_all: bool) -> None:
        try:
            found = {job.id: self._known(job) for job in await self.slurm.own_jobs()}
        except SlurmRefused:
            if is_for_all:
                self._source = None
            return
        self._slurm_as_of = self._now()
        open_ = {id_: job for id_, job in found.items() if not job.is_over}
        # One that ended may have been put back into the queue.
        back, self._ended = self._ended.keys() & open_, without(self._ended, open_)
        lost = [replace(job, state=LOST, ends=None) for job in without(self._gone, found).values()]
        for job in [*lost, *(job for job in found.values() if job.is_over)]:
            # Its end is told by Slurm, or it is the moment when we hear of it.
            self._ended.setdefault(job.id, replace(job, ends=job.ends or self._slurm_as_of))
        self._gone = {id_: job for id_, job in open_.items() if id_ in self._gone or id_ in back}
        self._live = without(self._live, self._ended)
        if is_for_all:
            self._gone, self._live = {}, open_
            self._as_of, self._source = self._slurm_as_of, "slurm"

    def _known(self, job: UserJob) -> UserJob:
        """Add what Slurm does not say of a job: whether it is a session."""
        before = self._live.get(job.id) or self._gone.get(job.id)
        is_session = (before is not None and before.is_session) or self._is_session(job)
        return replace(job, is_session=is_session)

    def _is_session(self, job: UserJob) -> bool:
        if job.id == self._session_job:
            return True
        default, name = self._default_name, job.name or ""
        return bool(default) and (name == default or name.startswith(f"{default}."))

    def _forget_old(self) -> None:
        since = self._now() - _KEPT_SECONDS
        kept = [job for job in self._ended.values() if (job.ends or 0) >= since]
        kept.sort(key=lambda job: (job.ends or 0, job.id))
        self._ended = {job.id: job for job in kept[-_MOST_KEPT:]}


def without(jobs: Mapping[str, UserJob], others: Mapping[str, UserJob]) -> dict[str, UserJob]:
    """Return the jobs that are not among the others."""
    return {job_id: job for job_id, job in jobs.items() if job_id not in others}


def job_to_cancel(body: bytes) -> str:
    """Read what the page asks for; raises `ValueError` with a sentence."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(_A_CANCEL) from error
    if not isinstance(message, dict) or set(message) != {"job"}:
        raise ValueError(_A_CANCEL)
    job_id = message["job"]
    if not isinstance(job_id, str) or not is_job_id(job_id):
        raise ValueError(_A_CANCEL)
    return job_id


class JobsHandler(APIHandler):
    """Tells the page of the jobs."""

    # A page asks by itself: no sign that somebody works.
    _track_activity = False

    def initialize(self, jobs: Jobs) -> None:
        """Take the session's view of its user's jobs."""
        self.jobs = jobs

    @web.authenticated
    async def get(self) -> None:
        """Give jobs and free GPUs."""
        is_anew, with_free = (self.get_query_argument(name, "") for name in ("anew", "free"))
        told = await self.jobs.tell(is_anew == "1", with_free=with_free != "0")
        self.finish(json.dumps(told))


class CancelHandler(APIHandler):
    """POST handler that cancels a job."""

    def initialize(self, jobs: Jobs) -> None:
        """Take the session's view of its user's jobs."""
        self.jobs = jobs

    @web.authenticated
    async def post(self) -> None:
        """Cancel one, as the user: Slurm refuses another's."""
        try:
            job_id = job_to_cancel(self.request.body)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from error
        try:
            await self.jobs.cancel(job_id)
        except SlurmRefused as error:
            raise web.HTTPError(409, str(error)) from error
        self.log.info("The user cancelled job %s", job_id)
        self.finish(json.dumps({"job": job_id}))


def routes(base_url: str, jobs: Jobs) -> list[tuple[str, type[APIHandler], dict[str, Any]]]:
    """Give the server's routes."""
    return [
        (url_path_join(base_url, "portal/jobs"), JobsHandler, {"jobs": jobs}),
        (url_path_join(base_url, "portal/jobs/cancel"), CancelHandler, {"jobs": jobs}),
    ]
