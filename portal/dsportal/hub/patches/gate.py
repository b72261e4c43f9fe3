"""Isolation of sessions that share one host name: the hub's side of the proxy's gate.

Whatever a session shows is its user's own program, and a page of it could act as whoever looks at
it, since the browser takes it for the portal. So the proxy lets a browser reach NAME's session only
with a cookie that the hub gave it when NAME logged in (``proxy.mjs`` in the role ``portal``).

The cookie opens nothing by itself: it is no login, and the session asks for one as ever. It says
which login this browser has, until when, signed with a key that hub and proxy derive from the token
that they share. A browser that comes without one is sent here, and from here to its own session.

With a host name for each user (``hub.subdomain_host``) browsers keep the pages of users apart, and
there is no gate.

Tried with JupyterHub 6.1.1.
"""

import base64
import hashlib
import hmac
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from jupyterhub.handlers import BaseHandler, default_handlers
from tornado import web
from tornado.httputil import url_concat

from dsportal.hub import handlers

PATH = "/portal/gate"
"""Below the hub's own address."""

REFUSAL = (
    "This is another user's session. All sessions share one host name here, so each can be opened "
    "by its own user only."
)


def cookie_name(*, is_encrypted: bool) -> str:
    """Give the cookie's name; what begins with ``__Host-`` no other page can set or overlay."""
    return "__Host-portal-gate" if is_encrypted else "portal-gate"


def cookie_value(token: str, user: str, expires: int) -> str:
    """Say that the browser's login is this user's until ``expires``, in seconds since 1970.

    ``token`` is what hub and proxy share.
    """
    key = hmac.digest(token.encode(), b"portal gate", hashlib.sha256)
    said = f"{expires}.{_base64(user.encode())}"
    return f"{said}.{_base64(hmac.digest(key, said.encode(), hashlib.sha256))}"


def owner(address: str) -> str | None:
    """Give the user whose session an address is in.

    >>> owner("/user/a%40b/lab?x=1")
    'a@b'
    >>> owner("/hub/home") is None
    True
    """
    root, _, rest = address.partition("/user/")
    name = rest.partition("?")[0].partition("/")[0]
    return unquote(name) if root == "" and name else None


@dataclass(frozen=True)
class Gate:
    """Gives browsers their cookies.

    ``token`` is what hub and proxy share; ``days`` for how long a login counts.
    """

    token: str
    is_encrypted: bool
    days: float

    def let_in(self, handler: Any, user: str) -> None:
        """Give the cookie of a user who is logged in."""
        value = cookie_value(self.token, user, round(time.time() + self.days * 86400))
        name = cookie_name(is_encrypted=self.is_encrypted)
        handler._set_cookie(name, value, encrypted=False, path="/", expires_days=self.days)

    def forget(self, handler: Any) -> None:
        """Take it away."""
        name = cookie_name(is_encrypted=self.is_encrypted)
        handler.clear_cookie(name, path="/", secure=self.is_encrypted)

    def install(self) -> None:
        """Let each login at the hub give the cookie, and each logout take it away."""

        def set_login_cookie(handler: Any, user: Any) -> None:
            _set_login_cookie(handler, user)
            self.let_in(handler, user.name)

        def clear_login_cookie(handler: Any, name: str | None = None) -> None:
            _clear_login_cookie(handler, name)
            self.forget(handler)

        BaseHandler.set_login_cookie = set_login_cookie
        BaseHandler.clear_login_cookie = clear_login_cookie
        handlers.add(default_handlers, PATH, GateHandler, {"gate": self})


class GateHandler(BaseHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Gives a browser its cookie, and sends it on to the session that it came for."""

    def initialize(self, gate: Gate) -> None:
        """Take what gives cookies."""
        self.gate = gate

    async def get(self) -> None:
        """Refuse what is another user's, and send who has no login there first."""
        try:
            address = self._validate_next_url(self.get_argument("next", ""))
        except ValueError as error:
            raise web.HTTPError(400, "next is not an address.") from error
        is_page = self.request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
        user = self.current_user
        if user is None and is_page:
            self.redirect(url_concat(self.settings["login_url"], {"next": self.request.uri}))
            return
        if user is None or owner(address) != user.name:
            raise web.HTTPError(403, REFUSAL)
        self.gate.let_in(self, user.name)
        self.redirect(address)


_set_login_cookie = BaseHandler.set_login_cookie
_clear_login_cookie = BaseHandler.clear_login_cookie


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
