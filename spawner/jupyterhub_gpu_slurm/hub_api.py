"""The request handlers that the spawner adds to the hub's REST API.

A session asks with its own token, and what it says concerns the session that holds the token:

``POST /hub/api/gpu-session/port`` with ``{"port": N}``
    Where it listens: once, while it starts.
``GET /hub/api/gpu-session/extend``, and ``POST`` with ``{"minutes": N}``
    By how much it can be extended; extend it.
``POST /hub/api/gpu-session/activity`` with ``{"idle_seconds": N}``
    For how long nobody has used it. Answered with the limits that hold for it.

The form's script asks, for those who may start that user's servers: the user, and admins.

``GET /hub/api/gpu-session/forecast/USER[/SERVER]?gpus=1&hours=8&partition=x&gpu_type=y``
    When it would start: ``{"state": "now" | "later" | "never" | "unknown", "start": ISO 8601 or
    null, "why": TEXT}``. The other options of a session are taken, too.
``GET /hub/api/gpu-session/availability/USER[/SERVER]``
    What the partitions that are open to the user have free: ``{"partitions": [...]}``.

And the culler, for who may stop that server:

``POST /hub/api/gpu-session/unused/USER/SERVER``
    Whether the session is to end now, which is remembered: ``{"end": BOOL}``.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

import batchspawner.api
from jupyterhub.apihandlers import APIHandler, default_handlers
from jupyterhub.scopes import needs_scope
from tornado import web

from jupyterhub_gpu_slurm.errors import Refusal, SpawnerError

PATH = "/gpu-session"
"""Below the hub's API."""
PORT_PATH = f"{PATH}/port"


def path_for_form(username: str, server_name: str) -> str:
    """Return what the form's script asks; ``{what}`` stands for forecast or availability."""
    server = f"/{quote(server_name, safe='')}" if server_name else ""
    return f"{PATH}/{{what}}/{quote(username, safe='')}{server}"


_PORTS = (1024, 65535)
_MINUTES = (1, 366 * 24 * 60)
_IDLE_SECONDS = (0, 10 * 366 * 86400)


def number_from(body: bytes, key: str, bounds: tuple[int, int]) -> int:
    """Read the one thing that a session may say: ``{KEY: N}``, within these bounds.

    Raises `ValueError` with a sentence for everything else.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError("The body must be JSON.") from error
    if not isinstance(message, dict) or set(message) != {key}:
        raise ValueError(f'The body must be {{"{key}": N}} and nothing else.')
    number = message[key]
    lowest, highest = bounds
    if type(number) is not int or not lowest <= number <= highest:
        raise ValueError(f'"{key}" must be a whole number from {lowest} to {highest}.')
    return number


def spawner_of_token(handler: Any) -> Any:
    """Return the spawner whose session holds the request's token, ``None`` if there is none.

    It is found by the token's number in what the hub keeps, so also after a restart of the hub,
    and while the spawner of an interrupted start waits to be started again.
    """
    token, user = handler.get_token(), handler.current_user
    if token is None or not hasattr(user, "orm_spawners"):
        return None
    for name, kept in user.orm_spawners.items():
        if (kept.state or {}).get("token_id") == token.id:
            spawner = user.spawners[name]
            return spawner if hasattr(spawner, "take_port") else None
    return None


@contextmanager
def answered(refusal: int = 403) -> Iterator[None]:
    """Answer in the words of a refusal, or with 503 in those of another error, Slurm's mostly."""
    try:
        yield
    except Refusal as error:
        raise web.HTTPError(refusal, str(error)) from error
    except SpawnerError as error:
        raise web.HTTPError(503, str(error)) from error


class SessionHandler(APIHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Base of the handlers that sessions call with their own token."""

    def prepare(self) -> Any:
        """Let in who shows a token; a browser's cookie is not enough."""
        if self.get_auth_token() is None:
            raise web.HTTPError(403, "A session's token is needed.")
        return super().prepare()

    def spawner(self) -> Any:
        """Return the spawner of the session that asks."""
        spawner = spawner_of_token(self)
        if spawner is None:
            raise web.HTTPError(403, "This is not the token of a session.")
        return spawner

    def number(self, key: str, bounds: tuple[int, int]) -> int:
        """Return the number that the session sent."""
        try:
            return number_from(self.request.body, key, bounds)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from error


class PortHandler(SessionHandler):
    """Takes a port from a starting session."""

    async def post(self) -> None:
        """Hand the port to the session's spawner."""
        spawner = self.spawner()
        if not spawner.take_port(self.number("port", _PORTS)):
            raise web.HTTPError(409, "No port is awaited from this session.")
        self.set_status(204)


class ExtensionHandler(SessionHandler):
    """Extends the session that asks."""

    async def get(self) -> None:
        """Say when the session's time is up, and how much can be added."""
        spawner = self.running()
        with answered():
            possible = await spawner.possible_extension()
        self.finish(json.dumps(possible.as_json()))

    async def post(self) -> None:
        """Add minutes, and say the same of the extended session."""
        spawner = self.running()
        minutes = self.number("minutes", _MINUTES)
        with answered():
            possible = await spawner.extend(minutes)
        self.finish(json.dumps(possible.as_json()))

    def running(self) -> Any:
        """Return the spawner, if there is a job whose time can be asked for."""
        spawner = self.spawner()
        if not spawner.has_job:
            raise web.HTTPError(409, "This session has no job.")
        return spawner


class ActivityHandler(SessionHandler):
    """Hears from a session for how long nobody has used it."""

    async def post(self) -> None:
        """Take it, and say what holds for the session."""
        spawner = self.spawner()
        seconds = self.number("idle_seconds", _IDLE_SECONDS)
        with answered():
            answer = await spawner.take_idle(seconds)
        self.finish(json.dumps(answer))


class FormHandler(APIHandler):  # type: ignore[misc]
    """Base of the handlers that the options form calls while it is open."""

    def spawner_of(self, user_name: str, server_name: str) -> Any:
        """Return the spawner whose form asks; for a server to be, that of the default one."""
        user = self.find_user(user_name)
        if user is None:
            raise web.HTTPError(404)
        known = server_name if server_name in user.orm_spawners else ""
        spawner = user.spawners[known]
        if not hasattr(spawner, "forecast"):
            raise web.HTTPError(404)
        return spawner


class ForecastHandler(FormHandler):
    """Tells when a session would start."""

    @needs_scope("start:servers")  # type: ignore[untyped-decorator]
    async def get(self, user_name: str, server_name: str = "") -> None:
        """Answer the form's question."""
        fields = {
            name: [value.decode(errors="replace") for value in values]
            for name, values in self.request.query_arguments.items()
        }
        with answered(refusal=400):
            forecast = await self.spawner_of(user_name, server_name).forecast(fields)
        self.write(json.dumps(forecast.as_json()))


class AvailabilityHandler(FormHandler):
    """Tells what is free."""

    @needs_scope("start:servers")  # type: ignore[untyped-decorator]
    async def get(self, user_name: str, server_name: str = "") -> None:
        """Answer from what is known of the cluster."""
        with answered():
            found = await self.spawner_of(user_name, server_name).availability()
        self.write(json.dumps({"partitions": [asdict(one) for one in found]}))


class UnusedHandler(APIHandler):  # type: ignore[misc]
    """Answers the culler, who is about to end a session."""

    @needs_scope("delete:servers")  # type: ignore[untyped-decorator]
    async def post(self, user_name: str, server_name: str = "") -> None:
        """Say whether the session is to end, and remember why."""
        user = self.find_user(user_name)
        if user is None or server_name not in user.orm_spawners:
            raise web.HTTPError(404)
        spawner = user.spawners[server_name]
        if not hasattr(spawner, "note_unused"):
            raise web.HTTPError(404)
        is_over = bool(spawner.ready and spawner.note_unused())
        self.finish(json.dumps({"end": is_over}))


HANDLERS = (
    (rf"/api{PORT_PATH}", PortHandler),
    (rf"/api{PATH}/extend", ExtensionHandler),
    (rf"/api{PATH}/activity", ActivityHandler),
    (rf"/api{PATH}/forecast/([^/]+)(?:/([^/]+))?", ForecastHandler),
    (rf"/api{PATH}/availability/([^/]+)(?:/([^/]+))?", AvailabilityHandler),
    (rf"/api{PATH}/unused/([^/]+)/([^/]*)", UnusedHandler),
)


def install() -> None:
    """Put these into the hub's API, once, in the place of batchspawner's own.

    That one lets a session set any of its spawner's attributes; here it says a port.
    """
    gone = {batchspawner.api.BatchSpawnerAPIHandler, *(kind for _, kind in HANDLERS)}
    default_handlers[:] = [handler for handler in default_handlers if handler[1] not in gone]
    default_handlers.extend(HANDLERS)
