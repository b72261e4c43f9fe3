"""Web servers of a session behind its login, through jupyter-server-proxy.

Of that package only named servers are used; its routes to any port (``/proxy/PORT``) are
never set up, because on a node shared by several users a port of localhost is
everybody's. What is proxied never sees how its user is known to the hub.
"""

import re
from collections.abc import Mapping
from typing import Any

MODULES = ("jupyter_server_proxy.config", "jupyter_server_proxy.api", "jupyterhub.httpclient")
"""What the routes need: too slow to import before the server listens."""
LAUNCHER_ROUTES = (r"server-proxy/.*",)
"""Below the server's base URL, as regular expressions."""

_OURS = re.compile(r"(?:__Host-)?jupyterhub-|_xsrf$|username-")
"""How the names of the cookies of JupyterHub and of Jupyter begin."""
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


def keeping_secrets(handler: type) -> type:
    """Give a handler of jupyter-server-proxy that hands on no secret of the user's."""

    class KeepingSecrets(handler):  # type: ignore[misc]
        def proxy_request_headers(self) -> Any:
            return without_secrets(super().proxy_request_headers())

    return KeepingSecrets


def add_routes(web_app: Any, processes: Mapping[str, dict[str, Any]]) -> None:
    """Give a running server the routes of these servers, and of their cards in the launcher.

    ``processes`` has each by its name, as jupyter-server-proxy describes one.
    """
    from jupyter_server.utils import url_path_join
    from jupyter_server_proxy.api import IconHandler, ServersInfoHandler
    from jupyter_server_proxy.config import ServerProcess, make_handlers

    base_url = web_app.settings["base_url"]
    servers = [ServerProcess(name=name, **process) for name, process in processes.items()]
    proxies = [
        (pattern, keeping_secrets(handler), *arguments)
        for pattern, handler, *arguments in make_handlers(base_url, servers)
    ]
    icons = {server.name: server.launcher_entry.icon_path for server in servers}
    web_app.add_handlers(
        ".*",
        [
            *proxies,
            (
                url_path_join(base_url, "server-proxy/servers-info"),
                ServersInfoHandler,
                {"server_processes": servers},
            ),
            (url_path_join(base_url, "server-proxy/icon/(.*)"), IconHandler, {"icons": icons}),
        ],
    )
