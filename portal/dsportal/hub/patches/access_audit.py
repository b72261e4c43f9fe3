"""Audit of access to other users' sessions: logged before it is allowed.

A browser that opens a session asks the hub for it (OAuth), and the hub knows who asks and whose the
session is. Somebody who comes with a token instead is noticed by the session, which writes it down
and shows it to its user as it shows every other visitor: `dsportal.session.page.visits`.

Tried with JupyterHub 6.1.1.
"""

from typing import Any

from jupyterhub.apihandlers import default_handlers
from jupyterhub.apihandlers.auth import OAuthAuthorizeHandler
from oauthlib.common import Request  # type: ignore[import-untyped]
from tornado import web

from dsportal import request_limits
from dsportal.hub import handlers


class AuditedAuthorizeHandler(OAuthAuthorizeHandler):  # type: ignore[misc]  # JupyterHub has no types
    """JupyterHub's own answer to who wants to open a session, written down for those of others."""

    def post(self) -> None:
        """Take the answer to the page that asks whether one really wants to."""
        if self.current_user is not None:
            request_limits.refuse_longer(self.request, request_limits.OAUTH_BODY)
            self._note(self._named_client())
        super().post()

    def _named_client(self) -> str:
        """Read the client as what makes the code does: in a body of any type, too."""
        try:
            return Request(*self.extract_oauth_params()).client_id or ""
        except ValueError as error:
            raise web.HTTPError(400, "This is not a valid OAuth request.") from error

    def _complete_login(
        self, uri: str, headers: Any, scopes: Any, credentials: dict[str, Any]
    ) -> None:
        self._note(credentials["client_id"])
        super()._complete_login(uri, headers, scopes, credentials)

    def _note(self, client_id: str) -> None:
        client = self.oauth_provider.fetch_by_client_id(client_id)
        spawner = client.spawner if client is not None else None
        guest = self.current_user.name
        if spawner is None or spawner.user.name == guest:
            return
        # JupyterHub checks this where it shows the page, and the session does once more.
        if not self.get_scope_filter("access:servers")(spawner, kind="server"):
            raise web.HTTPError(403, "This session is another user's.")
        self.log.warning("%s enters the session %r of %s", guest, spawner.name, spawner.user.name)


def install() -> None:
    """Put the handler in the place of JupyterHub's own."""
    handlers.replace(default_handlers, OAuthAuthorizeHandler, AuditedAuthorizeHandler)
