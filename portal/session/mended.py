"""Faults of Jupyter's own handlers that anybody could use, without a login."""

from typing import Any

from jupyter_server import DEFAULT_STATIC_FILES_PATH
from jupyter_server.base.handlers import APIHandler, PublicStaticFileHandler
from jupyterlab_server.licenses_handler import LicensesHandler
from tornado.web import StaticFileHandler


def mend() -> None:
    """Let them answer.

    The ``finish`` of the licenses' list (jupyterlab_server 2.28) is a coroutine, which nobody
    awaits when a request is refused: no answer comes, and each such request holds a connection.
    ``robots.txt`` and ``favicon.ico`` (jupyter_server 2.21) are not told their folder, and end the
    connection with a traceback in the log.
    """
    LicensesHandler.finish = _finish  # type: ignore[assignment, method-assign]
    PublicStaticFileHandler.initialize = _initialize  # type: ignore[assignment, method-assign]


def _initialize(handler: Any, path: str = DEFAULT_STATIC_FILES_PATH) -> None:
    StaticFileHandler.initialize(handler, path)


def _finish(handler: Any, chunk: Any = None, *, _mime_type: str | None = None) -> Any:
    if _mime_type is None:
        return APIHandler.finish(handler, chunk)
    handler.update_api_activity()
    handler.set_header("Content-Type", _mime_type)
    return super(APIHandler, handler).finish(chunk)
