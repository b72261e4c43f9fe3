"""The hub's request log, without what a stranger could fill it with.

JupyterHub writes a line for each request, as long as its address. Whoever asks often enough would
push out of the log, which is kept up to a size, what others did.

Tried with JupyterHub 6.1.1.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

from jupyterhub.app import JupyterHub
from jupyterhub.handlers import BaseHandler
from jupyterhub.log import log_request
from jupyterhub.metrics import prometheus_log_method
from tornado import web
from tornado.log import app_log

from dsportal.log_limits import cut, shorten

LONGEST_ADDRESS = 300
"""In characters; what is longer is cut."""
LONGEST_LINE = 2000
"""The same of any line: users, and strangers, may be quoted in it."""
_OF_STRANGERS = {
    ("base", "_user_for_cookie"),
    ("base", "_validate_next_url"),
    ("http1connection", "_read_message"),
    ("login", "check_xsrf_cookie"),
    ("provider", "authenticate_client"),
    ("provider", "authenticate_client_id"),
    ("web", "_decode_signed_value_v1"),
    ("_xsrf_utils", "_get_signed_value_urlsafe"),
}
"""Where JupyterHub and Tornado complain of what anybody may send: module and function."""


def install() -> None:
    """Keep quiet of strangers' mistakes, and of how forms are kept from being forged."""

    def log_exception(handler: Any, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, web.HTTPError) and error.status_code < 500 and not _is_known(handler):
            return
        _log_exception(handler, kind, error, trace)

    BaseHandler.log_exception = log_exception
    app_log.addFilter(_is_worth_a_line)
    lines = LineLimiter()

    def init_logging(hub: Any) -> None:
        _init_logging(hub)
        # What Tornado and the authenticator log comes here, too.
        for handler in hub.log.handlers:
            handler.addFilter(lines)

    JupyterHub.init_logging = init_logging


def log_known(handler: Any) -> None:
    """Write down requests of users and services, and the hub's own faults.

    Refused logins have lines of their own: `dsportal.authentication.throttle`.
    """
    if handler.request.method not in web.RequestHandler.SUPPORTED_METHODS:
        # A label of the metrics, each of which the hub keeps for good; and anybody may invent some.
        handler.request.method = "OTHER"
    if handler.get_status() < 500 and not _is_known(handler):
        prometheus_log_method(handler)
        return
    handler.request.uri = cut(handler.request.uri, LONGEST_ADDRESS)
    log_request(handler)


def _is_known(handler: Any) -> bool:
    try:
        return handler.current_user is not None
    except (web.HTTPError, RuntimeError):
        return False


class LineLimiter(logging.Filter):
    """Cuts long lines, and writes down one complaint of a stranger a second, and no more."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._said_at = -float("inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Cut a record, and say whether it is written."""
        longest = LONGEST_LINE
        if (record.module, record.funcName) in _OF_STRANGERS:
            if self._now() - self._said_at < 1:
                return False
            longest, self._said_at = LONGEST_ADDRESS, self._now()
        shorten(record, longest)
        return True


_init_logging = JupyterHub.init_logging
_log_exception = BaseHandler.log_exception


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    # Each browser that is given a form's secret; each that reads and does not say for which kind of
    # page, as none does over plain HTTP.
    is_routine = record.levelno <= logging.INFO or record.funcName == "_needs_check_xsrf"
    return record.module != "_xsrf_utils" or not is_routine
