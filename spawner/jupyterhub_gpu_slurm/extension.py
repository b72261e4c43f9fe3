"""Where a session asks for more time.

``GET /hub/api/gpu-session/extend`` says by how much the session can be extended, and
``POST`` with ``{"minutes": N}`` adds them; both are authorised by the session's own token, and
concern the session that holds it.
"""

import json
from typing import Any

from jupyterhub.apihandlers import APIHandler, default_handlers
from tornado import web

from jupyterhub_gpu_slurm.callback import spawner_of_token
from jupyterhub_gpu_slurm.errors import Refusal, SlurmError

PATH = "/gpu-session/extend"
"""Below the hub's API."""

_MOST_MINUTES = 366 * 24 * 60


def minutes_from(body: bytes) -> int:
    """Read the one thing a session may ask for.

    Raises `ValueError` with a sentence for everything else.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError("The body must be JSON.") from error
    if not isinstance(message, dict) or set(message) != {"minutes"}:
        raise ValueError('The body must be {"minutes": N} and nothing else.')
    minutes = message["minutes"]
    if type(minutes) is not int or not 1 <= minutes <= _MOST_MINUTES:
        raise ValueError(f"The minutes must be a whole number from 1 to {_MOST_MINUTES}.")
    return minutes


class SessionExtensionHandler(APIHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Extends the session that asks."""

    def prepare(self) -> Any:
        """Let in who shows a token; a browser's cookie is not enough."""
        if self.get_auth_token() is None:
            raise web.HTTPError(403, "A session's token is needed.")
        return super().prepare()

    async def get(self) -> None:
        """Say when the session's time is up, and how much can be added."""
        spawner = self._spawner()
        try:
            offer = await spawner.extension_offer()
        except SlurmError as error:
            raise web.HTTPError(503, str(error)) from error
        self.finish(json.dumps(offer.as_json()))

    async def post(self) -> None:
        """Add minutes, and say the same of the extended session."""
        spawner = self._spawner()
        try:
            minutes = minutes_from(self.request.body)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from error
        try:
            offer = await spawner.extend(minutes)
        except Refusal as error:
            raise web.HTTPError(403, str(error)) from error
        except SlurmError as error:
            spawner.log.warning("Job %s is not extended: %s", spawner.job_id, error.detail)
            raise web.HTTPError(503, str(error)) from error
        self.finish(json.dumps(offer.as_json()))

    def _spawner(self) -> Any:
        spawner = spawner_of_token(self)
        if spawner is None:
            raise web.HTTPError(403, "This is not the token of a session.")
        if not spawner.has_job:
            raise web.HTTPError(409, "This session has no job.")
        return spawner


def install() -> None:
    """Put the handler into the hub's API."""
    default_handlers[:] = [
        handler for handler in default_handlers if handler[1] is not SessionExtensionHandler
    ]
    default_handlers.append((rf"/api{PATH}", SessionExtensionHandler))
