"""The hub's own host name, where each user has one below it (``hub.subdomain_host``).

The proxy brings the hub whatever has no other place, and so all that is asked of a user's host but
for the session's own path. Browsers keep hosts apart, which is of use only as long as nobody logs
in to the hub at the host of a user. There the hub gives pictures and style sheets, and sends all
else on to its own host.

Tried with JupyterHub 6.1.1.
"""

import hashlib
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

from jupyterhub.handlers import BaseHandler, default_handlers
from jupyterhub.handlers.base import PrefixRedirectHandler
from jupyterhub.utils import subdomain_hook_idna
from tornado import web

from dsportal import response_headers
from dsportal.addresses import parts_of
from dsportal.hub import handlers

_READING = ("GET", "HEAD")
_prepare = BaseHandler.prepare


def host_of(name: str, domain: str, kind: str) -> str:
    """Return the host of a user or a service, as JupyterHub does, and never the same for two.

    JupyterHub marks a name that DNS does not take with 28 bits of its hash, which somebody who may
    choose a name can meet; here it has 96 more.
    """
    host = str(subdomain_hook_idna(name, domain, kind))
    label = host.removesuffix(f".{domain}")
    if kind != "user" or "--" not in label or label.startswith("xn--"):
        return host
    return f"{label}-{hashlib.sha256(name.encode()).hexdigest()[-24:]}.{domain}"


class ServiceHandler(BaseHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Sends on to the host of a service, where the hub's own is asked for its pages."""

    def get(self, name: str, path: str) -> None:
        """Answer what JupyterHub has made of ``/services/NAME/PATH``."""
        service = self.services.get(name)
        if service is None or not service.url:
            raise web.HTTPError(404)
        query = f"?{self.request.query}" if self.request.query else ""
        self.redirect(f"{service.host}{service.prefix}{quote(path)}{query}")


class OwnHost:
    """Says what of a request may be answered; ``address`` is ``hub.subdomain_host``."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        parts = urlsplit(address)
        self._name = parts.hostname or ""

    def is_below(self, host: str) -> bool:
        """Say whether a request's ``Host`` is a user's or a service's."""
        name = (parts_of(f"//{host}").hostname or "").rstrip(".")
        return name.endswith(f".{self._name}")

    def is_of_another_page(self, method: str, host: str, origin: str | None) -> bool:
        """Say whether a page of another host sends this, by the ``Origin`` that browsers tell.

        The hosts below are one site to a browser, and ``SameSite`` of a cookie does not keep them
        apart; they can also set cookies for the hub, so that a token in a cookie proves little.
        """
        if method in (*_READING, "OPTIONS") or origin is None:
            return False
        return origin != self.address and parts_of(origin).netloc != host


async def _prepare_at(own: OwnHost, handler: Any) -> None:
    request = handler.request
    if own.is_below(request.host) and not isinstance(handler, PrefixRedirectHandler):
        if request.method not in _READING:
            _refuse(handler, "This is not the hub's own address.")
        handler.redirect(own.address + request.uri)
        raise web.Finish
    has_token = "Authorization" in request.headers
    origin = request.headers.get("Origin")
    if not has_token and own.is_of_another_page(request.method, request.host, origin):
        _refuse(handler, response_headers.FROM_ANOTHER_PAGE)
    await _prepare(handler)


def _refuse(handler: Any, words: str) -> NoReturn:
    """Answer without one of the hub's pages, which would bring the cookie of its forms."""
    handler.set_status(403)
    handler.set_header("Content-Type", "text/plain; charset=utf-8")
    handler.finish(words)
    raise web.Finish


def install(address: str) -> None:
    """Let the hub answer at this address only; at every one where it is empty."""
    handlers.remove(default_handlers, ServiceHandler)
    if not address:
        BaseHandler.prepare = _prepare
        return
    handlers.add(default_handlers, r"/services/([^/]+)/?(.*)", ServiceHandler)
    own = OwnHost(address)

    async def prepare(handler: Any) -> None:
        await _prepare_at(own, handler)

    BaseHandler.prepare = prepare
