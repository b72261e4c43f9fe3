"""The logout page: whoever has a session is asked once whether to keep it running.

JupyterHub logs out at once, and the GPUs of a session that nobody thinks of stay reserved. Who has
none is logged out at once here, too; so is ``GET /hub/logout?keep=1``. ``POST`` stops what runs
or is about to, and needs JupyterHub's token of its forms.

Tried with JupyterHub 6.1.1.
"""

from collections.abc import Iterable
from typing import Any

from jupyterhub.handlers import default_handlers
from jupyterhub.handlers.login import LogoutHandler
from tornado import web

from dsportal.hub import handlers, starts


def sessions_of(user: Any) -> list[Any]:
    """Return the spawners of a user's sessions that run, or are about to."""
    active = [spawner for spawner in user.spawners.values() if spawner.active]
    return active + starts.interrupted(user)


def held_gpus(sessions: Iterable[Any]) -> int:
    """Return how many GPUs sessions hold or wait for."""
    return sum(getattr(one, "held_gpus", None) or 0 for one in sessions)


class AskingLogoutHandler(LogoutHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Logs a user out."""

    async def get(self) -> None:
        """Ask first where a session goes on."""
        user = self.current_user
        sessions = [] if user is None else sessions_of(user)
        if not sessions or self.get_argument("keep", ""):
            await super().get()
            return
        told = {"gpus": held_gpus(sessions), "sessions": len(sessions)}
        self.finish(await self.render_template("leave.html", **told))

    @web.authenticated
    async def post(self) -> None:
        """Stop what runs or is about to, then log out."""
        for spawner in starts.interrupted(self.current_user):
            await starts.give_up(spawner, self.slow_stop_timeout)
        await self._cancel_starts(self.current_user)
        await self._shutdown_servers(self.current_user)
        await super().get()

    async def _cancel_starts(self, user: Any) -> None:
        # JupyterHub stops only what is ready: a session that waits for GPUs would begin later.
        waiting = [one for one in user.spawners.values() if one.pending == "spawn"]
        for one in waiting:
            if one._spawn_future:
                one._spawn_future.cancel()
        await starts.are_over(*waiting, seconds=self.slow_stop_timeout)


def install() -> None:
    """Put it in the place of JupyterHub's own."""
    handlers.replace(default_handlers, LogoutHandler, AskingLogoutHandler)
