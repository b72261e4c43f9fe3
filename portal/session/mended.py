"""A fault of JupyterLab's server that a stranger could use."""

from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyterlab_server.licenses_handler import LicensesHandler


def mend_licenses() -> None:
    """Let the list of licenses answer who may not see it.

    In jupyterlab_server 2.28 its ``finish`` is a coroutine, which nobody awaits when a request is
    refused: the answer never comes, and each such request, from anybody, holds a connection.
    """
    LicensesHandler.finish = _finish


def _finish(handler: Any, chunk: Any = None, *, _mime_type: str | None = None) -> Any:
    if _mime_type is None:
        return APIHandler.finish(handler, chunk)
    handler.update_api_activity()
    handler.set_header("Content-Type", _mime_type)
    return super(APIHandler, handler).finish(chunk)
