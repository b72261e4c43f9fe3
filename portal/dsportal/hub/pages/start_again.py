"""Start of a session as one that is over was, in one click: by JupyterHub's form, filled in.

``GET /hub/portal/start-again/JOB`` with ``token``, ``server`` and ``next`` is where the page of a
session leads that has ended. It starts nothing itself: it is a page with the form of a start, which
its script sends. So the start is a POST with JupyterHub's token of its forms, which the page of a
session must not have.

No link from elsewhere starts a session. The page is shown only with a token by which the hub said,
minutes ago, that this user may start this session again; `session_status` gives it to
the session's own page. Without one, the options form is shown, to be read and sent by the user.

Tried with JupyterHub 6.1.1.
"""

import time
from collections.abc import Callable
from datetime import timedelta

from jupyterhub.handlers import BaseHandler, default_handlers
from jupyterhub.utils import url_escape_path, url_path_join
from tornado import web
from tornado.httputil import url_concat

from dsportal.hub import handlers
from dsportal.usage.record import PastSession
from dsportal.usage.recorder import Recorder

PATH = "/portal/start-again"
"""Below the hub's own address."""

VALID_FOR = timedelta(minutes=5)
"""How long a token is good for; the page asks for one when its button is clicked."""

_NAME = "portal-start-again"


def choices(over: PastSession) -> dict[str, str]:
    """Return the form's fields with what was chosen for a session that is over."""
    known = {"gpus": over.gpus, "partition": over.partition}
    chosen = over.options or known
    return {name: f"{value}" for name, value in chosen.items() if value is not None}


def start_token(
    secret: bytes, user: str, job_id: int, clock: Callable[[], float] = time.time
) -> str:
    """Say, signed with the hub's secret, that a user may start this session again now."""
    return web.create_signed_value(secret, _NAME, f"{job_id} {user}", clock=clock).decode()


def is_valid(
    token: str, secret: bytes, user: str, job_id: int, clock: Callable[[], float] = time.time
) -> bool:
    """Say whether the hub gave this token, for this user and session, and lately."""
    days = VALID_FOR / timedelta(days=1)
    signed = web.decode_signed_value(
        secret, _NAME, token, max_age_days=days, clock=clock, min_version=2
    )
    return signed == f"{job_id} {user}".encode()


class StartAgainHandler(BaseHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Shows the form that sends itself, to a page with the hub's token; else the options form."""

    def initialize(self, recorder: Recorder) -> None:
        """Take what knows the sessions that are over."""
        self.recorder = recorder

    @web.authenticated
    async def get(self, job_id: str) -> None:
        """Answer for one of the user's own sessions."""
        user, server = self.current_user, self.get_argument("server", "")
        form = url_path_join(self.hub.base_url, "spawn", user.escaped_name, url_escape_path(server))
        if next_url := self.get_argument("next", ""):
            form = url_concat(form, {"next": next_url})
        over = None
        token = self.get_argument("token", "")
        if is_valid(token, self.settings["cookie_secret"], user.name, int(job_id)):
            over = await self.recorder.ended(user.name, int(job_id))
        if over is None:
            self.redirect(form)
            return
        self.set_header("Cache-Control", "no-store")
        told = {"address": form, "choices": choices(over)}
        self.finish(await self.render_template("start_again.html", **told))


def install(recorder: Recorder) -> None:
    """Let the hub answer."""
    given = {"recorder": recorder}
    handlers.add(default_handlers, rf"{PATH}/(\d{{1,18}})", StartAgainHandler, given)
