"""The proxy to web servers of a session behind its login, over jupyter-server-proxy.

Of that package only named servers are used; its routes to any port (``/proxy/PORT``) are
never set up, because on a node shared by several users a port of localhost is
everybody's. What is proxied never sees how its user is known to the hub.
"""

import re
from pathlib import Path
from typing import Any

from tornado import web
from tornado.httputil import HTTPServerRequest

from dsportal import response_headers
from dsportal.session.upstream.streamed import streamed
from dsportal.session.web.confirmation import is_from_below

MODULES = ("jupyter_server_proxy.config", "jupyter_server_proxy.handlers", "jupyterhub.httpclient")
"""What the routes need: too slow to import before the server listens."""

_OURS = re.compile(r"(?:__Host-)?(?:jupyterhub-|portal-gate$)|_xsrf$|username-")
"""How the names of the cookies of JupyterHub, of the portal and of Jupyter begin."""
# jupyter-server-proxy 4.6.0 hands all on (its issue 590).
_SECRET_HEADERS = ("Authorization", "X-XSRFToken")


def without_secrets(headers: Any) -> Any:
    """Take from a request's headers what lets somebody in at the hub or at the session.

    Cookies that the proxied server has set itself stay.
    """
    kept = headers.copy()
    for name in _SECRET_HEADERS:
        kept.pop(name, None)
    cookies = [
        cookie
        for line in kept.get_list("Cookie")
        for cookie in (part.strip() for part in line.split(";"))
        if cookie and not _OURS.match(cookie.partition("=")[0].strip())
    ]
    kept.pop("Cookie", None)
    if cookies:
        kept["Cookie"] = "; ".join(cookies)
    return kept


def is_forged(request: HTTPServerRequest, base_url: str) -> bool:
    """Say whether a request that may change something comes from a page of somebody else's.

    What is proxied has no protection against that, as Jupyter's own routes have.
    """
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return False
    return not is_from_below(request, base_url)


def guarded(handler: type) -> type:
    """Give a handler of jupyter-server-proxy that hands on no secret, and no forged request."""

    class Guarded(handler):  # type: ignore[misc]
        async def prepare(self) -> None:
            await super().prepare()
            # Set by JupyterHub's login: a token came with the request, which no other page knows.
            has_token = getattr(self, "_token_authenticated", False)
            if not self._finished and not has_token and is_forged(self.request, self.base_url):
                raise web.HTTPError(403, response_headers.FROM_ANOTHER_PAGE)

        def proxy_request_headers(self) -> Any:
            return without_secrets(super().proxy_request_headers())

    return Guarded


def handler_to(path: str, socket: Path, *, absolute_url: bool) -> type:
    """Give the handler of what listens on a Unix socket and is shown below a path."""
    from jupyter_server_proxy.config import ServerProcess

    server = ServerProcess(name=path, unix_socket=str(socket), absolute_url=absolute_url)
    handler, _ = server.make_proxy_handler()
    return guarded(streamed(handler))


def add_handlers(web_app: Any, base_url: str, path: str, handler: type) -> None:
    """Show below a path of a running server what a handler of `handler_to` leads to."""
    from jupyter_server.utils import url_path_join
    from jupyter_server_proxy.handlers import AddSlashHandler

    web_app.add_handlers(
        ".*",
        [
            (url_path_join(base_url, path, "(.*)"), handler),
            (url_path_join(base_url, path), AddSlashHandler),
        ],
    )
