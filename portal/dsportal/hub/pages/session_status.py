"""State of a session, and how it ended: what its page asks when it cannot reach it.

``GET /hub/portal/session/JOB`` tells the session's user, by the hub's login cookie:
``{"state": "running" | "stopping" | "ended" | "unknown", "ended": MOMENT, "why": TEXT}``; a moment
is in seconds since 1970 or ``null``, and ``why`` completes "It ended because ...". Of one that has
ended there is also ``token``, with which the page can start it again (`start_again`).

JupyterHub wants the token of its forms where a script asks with a cookie, and the page of a session
has none. So the request must come from a page of the user's own session, which the browser says
(``Origin``, ``Referer``), and it changes nothing.

Tried with JupyterHub 6.1.1.
"""

import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from jupyterhub.handlers import BaseHandler, default_handlers
from jupyterhub.user import User
from tornado import web

from dsportal.addresses import parts_of
from dsportal.hub import handlers
from dsportal.hub.pages.start_again import start_token
from dsportal.usage.record import PastSession
from dsportal.usage.recorder import Recorder
from jupyterhub_gpu_slurm.errors import AccountUnavailable
from jupyterhub_gpu_slurm.session import endings
from jupyterhub_gpu_slurm.session.observation import Ending

PATH = "/portal/session"
"""Below the hub's own address."""


class SessionStatusHandler(BaseHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Tells the page of a session what became of it."""

    def initialize(self, recorder: Recorder) -> None:
        """Take what knows the sessions that are over."""
        self.recorder = recorder

    def check_xsrf_cookie(self) -> None:
        """Leave it: `is_own_page` decides, and nothing is changed."""

    async def get(self, job_id: str) -> None:
        """Answer for one of the user's own sessions."""
        user = self.current_user
        if not isinstance(user, User):
            raise web.HTTPError(403, "You are not logged in.")
        headers = self.request.headers
        here = f"{self.request.protocol}://{self.request.host}"
        own_host = user.host if self.subdomain_host else here
        if not is_own_page(headers.get("Origin"), headers.get("Referer"), own_host, user.base_url):
            raise web.HTTPError(403, "Only the page of your own session may ask.")
        if "Origin" in headers:
            self.set_header("Access-Control-Allow-Origin", own_host)
            self.set_header("Access-Control-Allow-Credentials", "true")
        self.set_header("Vary", "Origin, Referer, Cookie")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(await self._told(user, int(job_id))))

    async def _told(self, user: Any, job_id: int) -> dict[str, object]:
        state = await live_state(user, job_id)
        if state != "ended":
            return {"state": state, "ended": None, "why": ""}
        over = await self.recorder.ended(user.name, job_id)
        if over is None:
            return {"state": "unknown", "ended": None, "why": ""}
        return {
            "state": "ended",
            "ended": round(over.ended.timestamp()),
            "why": endings.because(over.ending, await idle_limit(user, over)),
            "token": start_token(self.settings["cookie_secret"], user.name, job_id),
        }


async def live_state(user: Any, job_id: int) -> str:
    """Say how the hub has the session with this job: running, stopping, or ended."""
    for spawner in list(user.spawners.values()):
        if getattr(spawner, "job_id", "") != f"{job_id}":
            continue
        if spawner.pending == "stop":
            return "stopping"
        # The hub's own look, at its pace: a session that has died is noticed by it.
        if spawner.active and (not spawner.ready or await spawner.poll_and_notify() is None):
            return "stopping" if spawner.job.is_leaving else "running"
    return "ended"


async def idle_limit(user: Any, *past: PastSession) -> timedelta | None:
    """Return how long a session may be unused, where one ended for that; ``None``: not known."""
    if all(over.ending is not Ending.UNUSED for over in past):
        return None
    try:
        limit: timedelta | None = await user.spawner.idle_limit()
    except AccountUnavailable:
        return None
    return limit


def is_own_page(origin: str | None, referer: str | None, host: str, path: str) -> bool:
    """Say whether a page of the user's own session asks: at ``host``, below ``path``.

    A browser names the origin where that is another one than the hub's, and else the whole page.
    """
    if origin is not None:
        return origin == host
    page = parts_of(referer or "")
    return page.netloc == urlsplit(host).netloc and page.path.startswith(path)


def install(recorder: Recorder) -> None:
    """Let the hub answer."""
    given = {"recorder": recorder}
    handlers.add(default_handlers, rf"{PATH}/(\d{{1,18}})", SessionStatusHandler, given)
