"""Fixes for Jupyter's own handlers: some faults could be used by anybody, without a login.

Tried with jupyter_server 2.21.1 and jupyterlab_server 2.28.1.
"""

import json
from typing import Any

from jupyter_server import DEFAULT_STATIC_FILES_PATH
from jupyter_server.base.handlers import APIHandler, JupyterHandler, PublicStaticFileHandler
from jupyterlab_server.licenses_handler import LicensesHandler
from tornado.web import HTTPError, StaticFileHandler


def mend() -> None:
    """Let them answer.

    The ``finish`` of the licenses' list (jupyterlab_server 2.28) is a coroutine, which nobody
    awaits when a request is refused: no answer comes, and each such request holds a connection.
    ``robots.txt`` and ``favicon.ico`` (jupyter_server 2.21) are not told their folder, and end the
    connection with a traceback in the log. A body that is no object ends as a fault of the server's
    (500), and is written into the log.
    """
    JupyterHandler.get_json_body = _json_body  # type: ignore[assignment, method-assign]
    LicensesHandler.finish = _finish  # type: ignore[assignment, method-assign]
    PublicStaticFileHandler.initialize = _initialize  # type: ignore[assignment, method-assign]


def _json_body(handler: Any) -> dict[str, Any] | None:
    if not handler.request.body.strip():
        return None
    try:
        body = json.loads(handler.request.body)
    except (ValueError, RecursionError) as error:
        raise HTTPError(400, "The body is not JSON.") from error
    if body is not None and not isinstance(body, dict):
        raise HTTPError(400, "The body must be an object.")
    if not isinstance((body or {}).get("type"), str | None):
        raise HTTPError(400, "type must be a string.")
    return body


def _initialize(handler: Any, path: str = DEFAULT_STATIC_FILES_PATH) -> None:
    StaticFileHandler.initialize(handler, path)


def _finish(handler: Any, chunk: Any = None, *, _mime_type: str | None = None) -> Any:
    if _mime_type is None:
        return APIHandler.finish(handler, chunk)
    handler.update_api_activity()
    handler.set_header("Content-Type", _mime_type)
    return super(APIHandler, handler).finish(chunk)
