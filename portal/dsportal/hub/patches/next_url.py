"""Validation of ``next=``: a link through the hub leads to no other user's pages.

A link to the login, or to the page that starts a session, names the page that follows. Who comes
from such a link believes to be at the portal, with the portal's own login on the screen; what is
below ``/user/NAME/`` is whatever NAME serves there. So only the user's own pages, the hub's and
its services' follow. Who may open the session of another opens it by its own address.

Tried with JupyterHub 6.1.1.
"""

from typing import Any
from urllib.parse import unquote, urlsplit

from jupyterhub.handlers import BaseHandler
from jupyterhub.user import User

_HUB = "hub"
_USERS = "user"
"""The first part of the path of everything that a user's own process answers."""

_get_next_url = BaseHandler.get_next_url


def is_allowed(target: str, own: str, base_url: str = "/") -> bool:
    """Say whether a browser may be sent to a path of the portal.

    ``own`` is whose login it is. The path is read as nobody reads it who means well: decoded to the
    end, since each part on the way decodes once, and without a step upwards.
    """
    place = urlsplit(target)
    path = _decoded(place.path)
    if place.netloc or path is None or any(ord(letter) < 32 for letter in target):
        return False
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        return False
    base = [part for part in base_url.split("/") if part]
    if parts[: len(base)] == base:
        parts = parts[len(base) :]
    # /hub/user/NAME leads to /user/NAME.
    if parts[:1] == [_HUB]:
        parts = parts[1:]
    return parts[:1] != [_USERS] or (bool(own) and parts[1:2] == [own])


def _decoded(path: str) -> str | None:
    """Decode what was encoded, however often; ``None`` where that has no end."""
    for _ in range(5):
        decoded = unquote(path)
        if decoded == path:
            return path
        path = decoded
    return None


def _next_url(handler: Any, user: Any = None, default: str | None = None) -> str:
    try:
        asked = handler._validate_next_url(handler.get_argument("next", default=""))
    except ValueError:
        # urlsplit's: it is no address.
        asked = ""
        handler.request.arguments.pop("next", None)
    viewer = handler.current_user or user
    own = viewer.name if isinstance(viewer, User) else ""
    if asked and not is_allowed(asked, own, handler.base_url):
        handler.log.warning("Not sent on to another user's pages: %r", asked[:200])
        handler.request.arguments.pop("next", None)
    return str(_get_next_url(handler, user, default))


def install() -> None:
    """Put it in the place of JupyterHub's own."""
    BaseHandler.get_next_url = _next_url
