"""Where a session reports the port it listens on.

``POST /hub/api/gpu-session/port`` with ``{"port": N}``, authorised by the session's own token.
It takes a port and nothing else, once, while the session is starting.
"""

import json
from typing import Any

import batchspawner.api
from jupyterhub.apihandlers import APIHandler, default_handlers
from tornado import web

PATH = "/gpu-session/port"
"""Below the hub's API."""

_LOWEST_PORT = 1024
_HIGHEST_PORT = 65535


def port_from(body: bytes) -> int:
    """Read the one thing a session may say.

    Raises `ValueError` with a sentence for everything else.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError("The body must be JSON.") from error
    if not isinstance(message, dict) or set(message) != {"port"}:
        raise ValueError('The body must be {"port": N} and nothing else.')
    port = message["port"]
    if type(port) is not int or not _LOWEST_PORT <= port <= _HIGHEST_PORT:
        raise ValueError(f"A port is a whole number from {_LOWEST_PORT} to {_HIGHEST_PORT}.")
    return port


class SessionPortHandler(APIHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Takes a port from a starting session."""

    def prepare(self) -> Any:
        """Let in who shows a token; a browser's cookie is not enough."""
        if self.get_auth_token() is None:
            raise web.HTTPError(403, "A session's token is needed.")
        return super().prepare()

    async def post(self) -> None:
        """Hand the port to the spawner whose session's token this is."""
        spawner = spawner_of_token(self)
        if spawner is None:
            raise web.HTTPError(403, "This is not the token of a session.")
        try:
            port = port_from(self.request.body)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from error
        if not spawner.take_port(port):
            raise web.HTTPError(409, "No port is awaited from this session.")
        self.set_status(204)


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


def install() -> None:
    """Put this handler into the hub's API, in the place of the base class's own.

    The hub's API accepts a port from a session, and nothing else.
    """
    default_handlers[:] = [
        handler
        for handler in default_handlers
        if handler[1] not in (batchspawner.api.BatchSpawnerAPIHandler, SessionPortHandler)
    ]
    default_handlers.append((rf"/api{PATH}", SessionPortHandler))
