"""Idempotent starts: a second one leads to the one that is under way.

Whoever goes back from the page of a start and presses the form's button again gets an error 400
with JupyterHub's own words for its log. Here the page of the session comes, whatever its state. And
a form that was refused comes back as it was sent, for a session with a name, too.

Tried with JupyterHub 6.1.1.
"""

from typing import Any

from jupyterhub.handlers import default_handlers
from jupyterhub.handlers.pages import SpawnHandler
from tornado import web

from dsportal.hub import handlers


class SecondStartHandler(SpawnHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Spawn handler that redirects a second start to the one under way."""

    _server_name = ""

    async def _post(self, user_name: str, server_name: str, display_name: str) -> None:
        self._server_name = server_name
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

    async def _render_form(self, for_user: Any, spawner_options_form: str, **told: Any) -> str:
        if self._server_name:
            # After a refusal JupyterHub gives the default session's, with other choices.
            named = for_user.spawners[self._server_name]
            spawner_options_form = await named.get_options_form()
        return str(await super()._render_form(for_user, spawner_options_form, **told))


def install() -> None:
    """Put it in the place of JupyterHub's own."""
    handlers.replace(default_handlers, SpawnHandler, SecondStartHandler)
