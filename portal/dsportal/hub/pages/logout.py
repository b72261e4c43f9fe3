"""The logout page: whoever has a session is asked once whether to keep it running.

JupyterHub logs out at once, and the GPUs of a session that nobody thinks of stay reserved. Who has
none is logged out at once here, too; so is ``GET /hub/logout?keep=1``. ``POST`` stops what runs
first, and needs JupyterHub's token of its forms.

Tried with JupyterHub 6.1.1.
"""

from typing import Any

from jupyterhub.handlers import default_handlers
from jupyterhub.handlers.login import LogoutHandler
from tornado import web

from dsportal.hub import handlers


def held_gpus(user: Any) -> int | None:
    """Return how many GPUs a user's sessions hold or wait for; ``None`` if there is no session."""
    active = [spawner for spawner in user.spawners.values() if spawner.active]
    return sum(getattr(one, "held_gpus", None) or 0 for one in active) if active else None


class AskingLogoutHandler(LogoutHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Logs a user out."""

    async def get(self) -> None:
        """Ask first where a session goes on."""
        user = self.current_user
        gpus = None if user is None else held_gpus(user)
        if gpus is None or self.get_argument("keep", ""):
            await super().get()
            return
        self.finish(await self.render_template("leave.html", gpus=gpus))

    @web.authenticated
    async def post(self) -> None:
        """Stop what runs, then log out."""
        await self._shutdown_servers(self.current_user)
        await super().get()


def install() -> None:
    """Put it in the place of JupyterHub's own."""
    handlers.replace(default_handlers, LogoutHandler, AskingLogoutHandler)
