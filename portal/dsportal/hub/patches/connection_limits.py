"""Connection limits of the hub's own port: idle connections cannot fill it.

Sessions reach the port, and so do their users, beside the front and its limits. JupyterHub makes
its server with Tornado's defaults: an idle connection stays for an hour, a body may come as slowly
as it likes, an answer may be read never, and of each there may be any number, until the hub can
open no more files.

Tried with JupyterHub 6.1.1 and Tornado 6.6.1.
"""

from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerConnectionDelegate

from dsportal.request_limits import MAX_HEADER_SIZE, ConnectionLimiter

MOST_IDLE = 2048
"""Connections that wait for a first request, or for another: an eighth of the hub's open files."""
MOST_ANSWERED = 4096
"""Connections whose request is being answered; a page that follows a start holds one."""
# A hub that stood still closes what has waited for longer before it reads what has come meanwhile.
_LIMITS = {"idle_connection_timeout": 90.0, "body_timeout": 60.0}

_initialize = HTTPServer.initialize
_listen = HTTPServer.listen


def initialize(
    server: HTTPServer, application: HTTPServerConnectionDelegate, **options: Any
) -> None:
    """Put the limits between the connections and the application."""
    limiter = ConnectionLimiter(application, MOST_IDLE, MOST_ANSWERED)
    _initialize(server, limiter, **{"max_header_size": MAX_HEADER_SIZE, **_LIMITS, **options})


def listen(server: HTTPServer, port: int, **options: Any) -> None:
    """Let as many wait to be accepted: one beyond waits a second, until it is sent again."""
    _listen(server, port, backlog=MOST_IDLE, **options)


def install() -> None:
    """Let the server that the hub makes, the one of its process, have them."""
    HTTPServer.initialize = initialize  # type: ignore[assignment,method-assign]
    HTTPServer.listen = listen  # type: ignore[assignment,method-assign]
