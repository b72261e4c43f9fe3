"""The session's remaining time, and its extension.

``GET /portal/clock`` tells the page; ``POST /portal/clock/extend`` with ``{"minutes": N}`` asks the
hub for more time. The deadline is Slurm's word (``PORTAL_JOB_END_TIME``) until the hub has a newer
one. The hub is asked at most once in a while, and only when a page asks.
"""

import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from dsportal.session import internal_tls
from jupyterhub_gpu_slurm.shared_answer import SharedAnswer

log = logging.getLogger(__name__)

_FRESH_SECONDS = 60.0
_REQUEST_SECONDS = 10.0
# More than the hub gives the launcher, so that its word is heard.
_EXTENSION_SECONDS = 120.0
_AN_EXTENSION = 'The body must be {"minutes": N}, N a whole number, and nothing else.'


@dataclass(frozen=True)
class ClockReading:
    """Remaining time of the session, and its possible extension. Times are seconds since 1970."""

    deadline: int | None = None
    """``None``: no limit, or not known."""
    longest_minutes: int = 0
    """By how much it can be extended now."""
    until: int | None = None
    """The deadline that this would give."""
    reason: str = ""
    """Why it cannot be extended."""
    times_left: int = 0
    """How often it can be extended."""


@dataclass(frozen=True)
class JobFacts:
    """The session's job, as read from environment variables."""

    job_id: str
    node: str
    gpus: int

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "JobFacts":
        """Read them."""
        gpus = environment.get("PORTAL_JOB_GPUS", "")
        return cls(
            environment.get("PORTAL_JOB_ID", ""),
            environment.get("PORTAL_JOB_NODE", ""),
            int(gpus) if gpus.isdecimal() else 0,
        )


class HubRefusal(Exception):
    """The hub refused, or did not answer; the text is for the user."""


class SessionClock:
    """Knows the deadline, and asks the hub about it."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        warning_minutes: tuple[int, ...] = (),
        now: Callable[[], float] = time.time,
    ) -> None:
        self._url = f"{environment.get('JUPYTERHUB_API_URL', '')}/gpu-session/extend"
        self._token = environment.get("JUPYTERHUB_API_TOKEN", "")
        self._facts = JobFacts.of(environment)
        self._warning_minutes = warning_minutes
        self._now = now
        end = environment.get("PORTAL_JOB_END_TIME", "")
        self._at_start = ClockReading(deadline=int(end) if end.isdecimal() else None)
        self._answer = SharedAnswer(self._read, _FRESH_SECONDS, now=now)
        self.is_watched = False
        """Whether there has been a page; one in the background asks for nothing."""

    async def tell(self) -> dict[str, Any]:
        """Give what the page shows."""
        self.is_watched = True
        reading = await self._answer.get()
        return {
            **asdict(reading),
            **asdict(self._facts),
            "now": round(self._now()),
            "warning_minutes": sorted(set(self._warning_minutes), reverse=True),
        }

    async def extend(self, minutes: int) -> dict[str, Any]:
        """Ask the hub for more minutes; raises `HubRefusal`."""
        self._answer.know(await self._ask_hub(minutes, _EXTENSION_SECONDS))
        log.info("The session is extended by %d minutes", minutes)
        return await self.tell()

    async def _read(self) -> ClockReading:
        """Ask the hub; where it does not answer, what was known goes on to be shown."""
        try:
            return await self._ask_hub(None, _REQUEST_SECONDS)
        except HubRefusal as error:
            log.info("The hub does not tell the deadline: %s", error)
            return self._answer.latest or self._at_start

    async def _ask_hub(self, minutes: int | None, time_limit: float) -> ClockReading:
        request = HTTPRequest(
            self._url,
            method="GET" if minutes is None else "POST",
            headers={"Authorization": f"token {self._token}", "Content-Type": "application/json"},
            body=None if minutes is None else json.dumps({"minutes": minutes}),
            connect_timeout=_REQUEST_SECONDS,
            request_timeout=time_limit,
            ssl_options=internal_tls.client_context(),
        )
        try:
            answer = await AsyncHTTPClient().fetch(request)
            return reading_from(answer.body)
        except HTTPClientError as error:
            raise HubRefusal(_words_of(error)) from error
        except (OSError, ValueError) as error:
            raise HubRefusal("The hub is not responding; try again in a minute.") from error


def reading_from(body: bytes) -> ClockReading:
    """Read what the hub says; raises `ValueError` for anything else."""
    message = json.loads(body)
    if not isinstance(message, dict):
        raise ValueError("not an object")
    deadline, until = message.get("deadline"), message.get("until")
    longest, times_left = message.get("longest_minutes"), message.get("times_left", 0)
    for moment in (deadline, until):
        if moment is not None and type(moment) is not int:
            raise ValueError("not a moment")
    if type(longest) is not int:
        raise ValueError("not a number of minutes")
    if type(times_left) is not int:
        raise ValueError("not a number of extensions")
    return ClockReading(deadline, longest, until, str(message.get("reason", "")), times_left)


def minutes_from(body: bytes) -> int:
    """Read what the page asks for; raises `ValueError` with a sentence."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(_AN_EXTENSION) from error
    if not isinstance(message, dict) or set(message) != {"minutes"}:
        raise ValueError(_AN_EXTENSION)
    minutes = message["minutes"]
    if type(minutes) is not int:
        raise ValueError(_AN_EXTENSION)
    return minutes


def _words_of(error: HTTPClientError) -> str:
    """Return the hub's own sentence, where it sent one."""
    try:
        message = json.loads(error.response.body)["message"] if error.response else None
    except (ValueError, KeyError, TypeError):
        message = None
    if isinstance(message, str) and message and error.code < 600:
        return message
    return "The hub is not responding; try again in a minute."


class ClockHandler(APIHandler):
    """Tells the page the time."""

    # A page asks by itself: no sign that somebody works.
    _track_activity = False

    def initialize(self, clock: SessionClock) -> None:
        """Take the session's clock."""
        self.clock = clock

    @web.authenticated
    async def get(self) -> None:
        """Give deadline and extension."""
        self.finish(json.dumps(await self.clock.tell()))


class ExtendHandler(APIHandler):
    """POST handler that extends the session."""

    def initialize(self, clock: SessionClock) -> None:
        """Take the session's clock."""
        self.clock = clock

    @web.authenticated
    async def post(self) -> None:
        """Ask the hub for more time."""
        try:
            minutes = minutes_from(self.request.body)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from error
        try:
            self.finish(json.dumps(await self.clock.extend(minutes)))
        except HubRefusal as error:
            raise web.HTTPError(409, str(error)) from error


def routes(
    base_url: str, clock: SessionClock
) -> list[tuple[str, type[APIHandler], dict[str, SessionClock]]]:
    """Give the server's routes."""
    return [
        (url_path_join(base_url, "portal/clock"), ClockHandler, {"clock": clock}),
        (url_path_join(base_url, "portal/clock/extend"), ExtendHandler, {"clock": clock}),
    ]
