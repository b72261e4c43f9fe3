"""Idempotent starts: a second one leads to the one that is under way.

Whoever goes back from the page of a start and presses the form's button again gets an error 400
with JupyterHub's own words for its log. Here the page of the session comes, whatever its state.

Tried with JupyterHub 6.1.1.
"""

from jupyterhub.handlers import default_handlers
from jupyterhub.handlers.pages import SpawnHandler
from tornado import web

from dsportal.hub import handlers


class SecondStartHandler(SpawnHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Takes the form."""

    async def _post(self, user_name: str, server_name: str, display_name: str) -> None:
        try:
            await super()._post(
                user_name=user_name, server_name=server_name, display_name=display_name
            )
        except web.HTTPError as error:
            # Who may not start it was refused before, with another status.
            user = self.find_user(user_name) if error.status_code == 400 else None
            spawner = user.spawners.get(server_name) if user else None
            if spawner is None or not (spawner.pending or spawner.ready):
                raise
            self.redirect(self._get_pending_url(user, server_name))


def install() -> None:
    """Put it in the place of JupyterHub's own."""
    handlers.replace(default_handlers, SpawnHandler, SecondStartHandler)
