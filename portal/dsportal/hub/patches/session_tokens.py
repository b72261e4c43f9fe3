"""Protection of a session's tokens: they are not revoked while the session needs them.

JupyterHub lists them among its user's tokens, and revokes them with a click. Without its own, the
session cannot tell the hub anything, nobody can log in to it any more, and only a restart helps.
Without those of browsers, its open pages are answered no more. They end with their session, so
whoever wants them gone stops that.

Tried with JupyterHub 6.1.1.
"""

from typing import Any

from jupyterhub.apihandlers import default_handlers
from jupyterhub.apihandlers.users import UserTokenAPIHandler
from tornado import web

from dsportal.hub import handlers

IN_USE = (
    "This token belongs to a session, which would not work without it. It ends with the session: "
    "stop that to revoke it."
)


def session_tokens(user: Any) -> frozenset[int]:
    """Return the hub's numbers of the tokens that a user's sessions hold themselves.

    JupyterHub calls it for each page, also for one that is shown to nobody known, or to a service.
    """
    sessions = getattr(user, "orm_spawners", {})
    states = (kept.state or {} for kept in sessions.values())
    return frozenset(state["token_id"] for state in states if state.get("token_id"))


def session_clients(user: Any) -> frozenset[str]:
    """Return as what a user's sessions are known to the hub, which lets browsers into them.

    Without the tokens of such a client, the open pages of its session get no answer any more.
    """
    sessions = getattr(user, "spawners", {})
    return frozenset(one.oauth_client_id for one in sessions.values() if one.active)


class GuardedTokenHandler(UserTokenAPIHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Shows and revokes tokens, but for those."""

    def find_token_by_id(self, user: Any, token_id: str) -> Any:
        """Find one; it is asked here, after the scopes, by whatever is done to it."""
        token = super().find_token_by_id(user, token_id)
        if self.request.method == "DELETE" and (
            token.id in session_tokens(user) or token.client_id in session_clients(user)
        ):
            raise web.HTTPError(409, IN_USE)
        return token


def install() -> None:
    """Put it in the place of JupyterHub's own."""
    handlers.replace(default_handlers, UserTokenAPIHandler, GuardedTokenHandler)
