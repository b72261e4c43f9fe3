"""The hub's own port: nobody fills it with connections over which nothing is asked.

Sessions reach the port, and so do their users, beside the front and its limits. JupyterHub makes
its server with Tornado's defaults: an idle connection stays for an hour, a body may come as slowly
as it likes, and of either there may be any number, until the hub can open no more files.

Tried with JupyterHub 6.1.1 and Tornado 6.6.1.
"""

from typing import Any

from tornado import httpserver
from tornado.httputil import HTTPServerConnectionDelegate

from dsportal.request_limits import SERVER_ARGUMENTS, IdleLimiter

MOST_IDLE = 2048
"""Connections: an eighth of the files that the hub may have open."""
_BODY_SECONDS = 15.0
"""The front passes bodies on when they are complete, and gives their senders as long."""


class BoundedServer(httpserver.HTTPServer):
    """Tornado's, for an application that anybody may reach."""

    def initialize(self, request_callback: HTTPServerConnectionDelegate, **options: Any) -> None:
        """Put the limit between the connections and the application."""
        bounded = IdleLimiter(request_callback, MOST_IDLE)
        super().initialize(bounded, body_timeout=_BODY_SECONDS, **SERVER_ARGUMENTS, **options)


def install() -> None:
    """Let the hub, which makes one server in its process, make this one."""
    httpserver.HTTPServer = BoundedServer  # type: ignore[misc]
