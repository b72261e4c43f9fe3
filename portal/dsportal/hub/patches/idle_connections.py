"""The hub's own port: nobody fills it with connections over which nothing is asked.

Sessions reach the port, and so do their users, beside the front and its limits. JupyterHub makes
its server with Tornado's defaults: an idle connection stays for an hour, a body may come as slowly
as it likes, and of either there may be any number, until the hub can open no more files.

Tried with JupyterHub 6.1.1 and Tornado 6.6.1.
"""

from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerConnectionDelegate

from dsportal.request_limits import SERVER_ARGUMENTS, IdleLimiter

MOST_IDLE = 2048
"""Connections: an eighth of the files that the hub may have open."""
_BODY_SECONDS = 15.0
"""The front passes bodies on when they are complete, and gives their senders as long."""

_initialize = HTTPServer.initialize


def initialize(
    server: HTTPServer, application: HTTPServerConnectionDelegate, **options: Any
) -> None:
    """Put the limit between the connections and the application."""
    limits = {**SERVER_ARGUMENTS, "body_timeout": _BODY_SECONDS}
    _initialize(server, IdleLimiter(application, MOST_IDLE), **{**limits, **options})


def install() -> None:
    """Let the server that the hub makes, the one of its process, have them."""
    HTTPServer.initialize = initialize  # type: ignore[assignment,method-assign]
