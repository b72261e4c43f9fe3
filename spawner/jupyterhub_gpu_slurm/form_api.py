"""What the options form's script asks while the form is open.

``GET /hub/api/gpu-session/forecast/USER[/SERVER]?gpus=1&hours=8&partition=x&gpu_type=y``
    When it would start: ``{"state": "now" | "later" | "never" | "unknown", "start": ISO 8601 or
    null, "why": TEXT}``.
``GET /hub/api/gpu-session/availability/USER[/SERVER]``
    What the partitions that are open to the user have free: ``{"partitions": [...]}``.

For those who may start that user's servers: the user, and admins.
"""

import json
from typing import Any

from jupyterhub.apihandlers import APIHandler, default_handlers
from jupyterhub.scopes import needs_scope
from tornado import web

from jupyterhub_gpu_slurm.availability import as_json
from jupyterhub_gpu_slurm.errors import Refusal, SlurmError

PATH = "/gpu-session"
"""Below the hub's API."""

_NOT_OPTIONS = "_xsrf"


class _FormHandler(APIHandler):  # type: ignore[misc]  # JupyterHub has no types
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


class ForecastHandler(_FormHandler):
    """Tells when a session would start."""

    @needs_scope("start:servers")  # type: ignore[untyped-decorator]
    async def get(self, user_name: str, server_name: str = "") -> None:
        """Answer the form's question."""
        fields = {
            name: [value.decode(errors="replace") for value in values]
            for name, values in self.request.query_arguments.items()
            if name != _NOT_OPTIONS
        }
        try:
            forecast = await self.spawner_of(user_name, server_name).forecast(fields)
        except Refusal as error:
            raise web.HTTPError(400, str(error)) from error
        except SlurmError as error:
            raise web.HTTPError(503, str(error)) from error
        self.write(json.dumps(forecast.as_json()))


class AvailabilityHandler(_FormHandler):
    """Tells what is free."""

    @needs_scope("start:servers")  # type: ignore[untyped-decorator]
    async def get(self, user_name: str, server_name: str = "") -> None:
        """Answer from what is known of the cluster."""
        try:
            found = await self.spawner_of(user_name, server_name).availability()
        except SlurmError as error:
            raise web.HTTPError(503, str(error)) from error
        self.write(json.dumps({"partitions": [as_json(one) for one in found]}))


def install() -> None:
    """Put the handlers into the hub's API."""
    ours = (ForecastHandler, AvailabilityHandler)
    default_handlers[:] = [handler for handler in default_handlers if handler[1] not in ours]
    for what, handler in zip(("forecast", "availability"), ours, strict=True):
        default_handlers.append((rf"/api{PATH}/{what}/([^/]+)(?:/([^/]+))?", handler))
