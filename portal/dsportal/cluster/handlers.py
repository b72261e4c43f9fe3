"""Routes for everybody who may look: the files of the page, the API, and its event streams."""

import asyncio
import json
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyterhub.services.auth import HubOAuthenticated, UserNotAllowed
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError, RequestHandler

from dsportal import request_limits
from dsportal.cluster import openapi, viewer_access, words
from dsportal.cluster.pages import Pages
from dsportal.cluster.sessions import Sessions
from dsportal.cluster.shared_view import SharedView
from dsportal.cluster.usage import GpuHours
from dsportal.cluster.view import Viewer
from dsportal.cluster.viewer_access import TooManyStreams, ViewerAccess
from dsportal.cluster.watch import Watch
from dsportal.response_headers import head_as_get
from jupyterhub_gpu_slurm.errors import SlurmError

_RETRY_MILLISECONDS = 3000
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)


@dataclass(frozen=True)
class ServiceContext:
    """State and settings that all handlers of the service share."""

    watch: Watch
    sessions: Sessions
    viewers: ViewerAccess
    pages: Pages
    usage: GpuHours
    show_names: bool
    login_seconds: float
    """How long the hub's word on a login is good for."""


class Handler(HubOAuthenticated, RequestHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Lets in who may look: by the browser's login at the hub, or by a token of the hub's."""

    context: ServiceContext
    model: dict[str, Any]
    """The hub's word on who asks."""
    viewer: Viewer

    def initialize(self, context: ServiceContext) -> None:
        """Take what all share."""
        self.context = context

    def set_default_headers(self) -> None:
        """Keep answers out of caches, and foreign things out of the page."""
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "same-origin")

    async def prepare(self) -> None:
        """Ask the hub who it is; a request by cookie that could be forged counts as nobody's."""
        model = await self.hub_auth.get_user(self, sync=False)
        self._hub_auth_user_cache = model = self._allowed(model)
        if model is None:
            self.turn_away()
            return
        request_limits.welcome()
        self.model = model
        self.viewer = viewer_access.viewer_of(model, self.context.show_names)

    def turn_away(self) -> None:
        """Answer who is not logged in."""
        raise HTTPError(403, words.NOT_LOGGED_IN)

    def _allowed(self, model: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            return self.check_hub_user(model) if model else None
        except UserNotAllowed as error:
            raise HTTPError(403, words.NOT_ALLOWED) from error

    async def is_still_allowed(self) -> bool:
        """Ask the hub anew whether the login or the token holds."""
        try:
            model = await self.hub_auth.user_for_token(
                self.hub_auth.get_token(self) or "", use_cache=False, sync=False
            )
            if self._allowed(model) is None or model is None:
                return False
        except HTTPError as error:
            # A hub that is away says nothing about a login.
            return error.status_code != 403
        self.model, self.viewer = model, viewer_access.viewer_of(model, self.context.show_names)
        return True

    async def shared(self) -> SharedView:
        """Return the cluster; answers 503 when there is no snapshot of it yet."""
        try:
            return await self.context.watch.shared()
        except SlurmError as error:
            raise HTTPError(503, words.try_again(str(error))) from error

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say what is wrong in one sentence, as JSON."""
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps({"status": status_code, "message": self._words(**kwargs)}))

    def _words(self, **kwargs: Any) -> str:
        error = kwargs.get("exc_info", (None, None, None))[1]
        said = error.log_message if isinstance(error, HTTPError) else None
        return said or f"{self._reason}."


class ClusterHandler(Handler):
    """GET handler of the nodes and partitions."""

    head = head_as_get

    async def get(self) -> None:
        """Write the nodes and partitions."""
        shared = await self.shared()
        self.set_header("Content-Type", "application/json")
        self.finish(shared.dated(shared.cluster_body(self.viewer)))


class ClusterJobsHandler(Handler):
    """GET handler of the queue's jobs."""

    head = head_as_get

    async def get(self) -> None:
        """Write the jobs, or only the viewer's own with ``?own=true``."""
        only_own = self.get_query_argument("own", "false")
        if only_own not in ("true", "false"):
            raise HTTPError(400, words.OWN_IS_TRUE_OR_FALSE)
        shared = await self.shared()
        self.set_header("Content-Type", "application/json")
        self.finish(shared.dated(shared.jobs_body(self.viewer, only_own=only_own == "true")))


class OpenApiHandler(Handler):
    """GET handler of the API's OpenAPI description."""

    async def get(self) -> None:
        """Write the description."""
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(openapi.description(self.hub_auth.base_url)))


class EventsHandler(Handler):
    """Tells whenever something changes, as server-sent events.

    It ends when the login does. Nothing of it counts as use of a session: it is the hub's service
    that is asked, and the sessions' own word on their use is what counts.
    """

    _following: asyncio.Task[Any] | None = None

    def on_connection_close(self) -> None:
        """Give the seat back at once, not at the next event."""
        if self._following is not None:
            self._following.cancel()

    async def get(self) -> None:
        """Follow the cluster until the viewer leaves."""
        self._following = asyncio.current_task()
        try:
            with self.context.viewers.seat(str(self.model["name"])):
                await self._follow()
        except TooManyStreams as error:
            raise HTTPError(429, words.too_many_streams(viewer_access.STREAMS_EACH)) from error
        except (StreamClosedError, asyncio.CancelledError):
            # The viewer has left, or the service ends.
            return

    async def _follow(self) -> None:
        self.set_header("Content-Type", "text/event-stream")
        # What proxies of a site take as a wish not to collect the answer before passing it on.
        self.set_header("X-Accel-Buffering", "no")
        self.write(f"retry: {_RETRY_MILLISECONDS}\n\n")
        await self.flush()
        told: dict[str, object] = {}
        # All begin together after a restart, and are not to ask the hub together ever after.
        early = random.uniform(0, self.context.login_seconds)  # noqa: S311
        checked_at = time.monotonic() - early
        async for shared in self.context.watch.views():
            if time.monotonic() - checked_at > self.context.login_seconds:
                if not await self.is_still_allowed():
                    await self._tell([event("end", "{}")])
                    return
                checked_at = time.monotonic()
            news = await self.news(shared, told) if shared else []
            await self._tell(news or [event("heartbeat", heartbeat(shared))])

    async def _tell(self, events: list[str]) -> None:
        self.write("".join(events))
        await self.flush()

    async def news(self, shared: SharedView, told: dict[str, object]) -> list[str]:
        """Return an event for each of the API's answers that is another one than ``told``."""
        bodies = {
            "cluster": shared.cluster_body(self.viewer),
            "jobs": shared.jobs_body(self.viewer),
        }
        changed = {name: body for name, body in bodies.items() if told.get(name) != body}
        told.update(changed)
        return [event(name, shared.dated(body)) for name, body in changed.items()]


class FileHandler(RequestHandler):
    """Gives one of the page's own files, which are no secret."""

    head = head_as_get
    _KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}  # noqa: RUF012

    def initialize(self, file: Path) -> None:
        """Take the file."""
        self._file = file

    async def get(self) -> None:
        """Write it."""
        self.set_header("Content-Type", f"{self._KINDS[self._file.suffix]}; charset=utf-8")
        self.set_header("Cache-Control", "no-cache")
        self.set_header("X-Content-Type-Options", "nosniff")
        text = await asyncio.to_thread(self._file.read_bytes)
        self.finish(text)


def event(name: str, data: str) -> str:
    """Write a server-sent event; ``data`` has no newlines, as JSON has none."""
    return f"event: {name}\ndata: {data}\n\n"


def heartbeat(shared: SharedView | None) -> str:
    """Say that the stream is there, and as of when what it told holds."""
    if shared is None:
        return "{}"
    return json.dumps({"as_of": shared.snapshot.as_of.timestamp(), "trouble": shared.trouble})
