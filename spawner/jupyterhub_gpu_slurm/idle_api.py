"""Where a session says for how long nobody has used it, and where the culler announces its end.

``POST /hub/api/gpu-session/activity`` with ``{"idle_seconds": N}``, authorised by the session's own
token, concerns the session that holds it. ``POST /hub/api/gpu-session/unused/USER/SERVER``, for who
may stop that server, answers whether it is to end now, and remembers why.
"""

import json
from typing import Any

from jupyterhub.apihandlers import APIHandler, default_handlers
from jupyterhub.scopes import needs_scope
from tornado import web

from jupyterhub_gpu_slurm.callback import spawner_of_token
from jupyterhub_gpu_slurm.errors import SlurmError

PATH = "/gpu-session/activity"
"""Below the hub's API."""
UNUSED_PATH = "/gpu-session/unused"

_MOST_SECONDS = 10 * 366 * 86400


def idle_seconds_from(body: bytes) -> int:
    """Read the one thing a session may say.

    Raises `ValueError` with a sentence for everything else.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError("The body must be JSON.") from error
    if not isinstance(message, dict) or set(message) != {"idle_seconds"}:
        raise ValueError('The body must be {"idle_seconds": N} and nothing else.')
    seconds = message["idle_seconds"]
    if type(seconds) is not int or not 0 <= seconds <= _MOST_SECONDS:
        raise ValueError(f"The seconds must be a whole number from 0 to {_MOST_SECONDS}.")
    return seconds


class SessionActivityHandler(APIHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Hears from a session for how long nobody has used it."""

    def prepare(self) -> Any:
        """Let in who shows a token; a browser's cookie is not enough."""
        if self.get_auth_token() is None:
            raise web.HTTPError(403, "A session's token is needed.")
        return super().prepare()

    async def post(self) -> None:
        """Take it, and say what holds for the session."""
        spawner = spawner_of_token(self)
        if spawner is None:
            raise web.HTTPError(403, "This is not the token of a session.")
        try:
            seconds = idle_seconds_from(self.request.body)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from error
        try:
            answer = await spawner.take_idle(seconds)
        except SlurmError as error:
            raise web.HTTPError(503, str(error)) from error
        self.finish(json.dumps(answer))


class UnusedSessionHandler(APIHandler):  # type: ignore[misc]
    """Answers the culler, who is about to end a session."""

    @needs_scope("delete:servers")  # type: ignore[untyped-decorator]
    async def post(self, user_name: str, server_name: str = "") -> None:
        """Say whether the session is to end, and remember why."""
        user = self.find_user(user_name)
        if user is None or server_name not in user.orm_spawners:
            raise web.HTTPError(404)
        spawner = user.spawners[server_name]
        is_over = bool(spawner.ready and spawner.note_unused())
        self.finish(json.dumps({"end": is_over}))


def install() -> None:
    """Put the handlers into the hub's API."""
    ours = (SessionActivityHandler, UnusedSessionHandler)
    default_handlers[:] = [handler for handler in default_handlers if handler[1] not in ours]
    default_handlers.append((rf"/api{PATH}", SessionActivityHandler))
    default_handlers.append((rf"/api{UNUSED_PATH}/([^/]+)/([^/]*)", UnusedSessionHandler))
