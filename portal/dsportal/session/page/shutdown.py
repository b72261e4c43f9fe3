"""A last chance to save: open pages are told before the server stops.

Slurm ends a job (its time is up, somebody cancelled it, another job takes its place) with a SIGTERM
and, ``KillWait`` seconds later, a SIGKILL. In between the pages hear of it on the event bus that
JupyterLab listens to anyway; a page with changed documents says that it saves, and the server waits
for it.
"""

import asyncio
import logging
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

log = logging.getLogger(__name__)

EVENT = "https://events.data-scientist-portal.org/session-stopping/v1"

# Less than any sensible KillWait in all.
_ANSWER_SECONDS = 0.7
_SAVING_SECONDS = 5.0
_ANOTHER_SECONDS = 0.2


class ShutdownNotice:
    """Tells the pages, and waits for those that save."""

    def __init__(self, event_logger: Any) -> None:
        self.is_said = False
        self._events = event_logger
        self._saving = 0
        self._has_begun = asyncio.Event()
        self._is_done = asyncio.Event()
        event_logger.register_event_schema(
            {
                "$id": EVENT,
                "version": "1",
                "title": "The session stops",
                "personal-data": False,
                "type": "object",
                "properties": {},
            }
        )

    async def say(
        self, answer_seconds: float = _ANSWER_SECONDS, saving_seconds: float = _SAVING_SECONDS
    ) -> None:
        """Tell the pages; return when none of them saves any more."""
        self.is_said = True
        self._events.emit(schema_id=EVENT, data={})
        try:
            await asyncio.wait_for(self._has_begun.wait(), answer_seconds)
        except TimeoutError:
            return
        try:
            await asyncio.wait_for(self._all_have_saved(), saving_seconds)
        except TimeoutError:
            log.warning("A page did not save its documents before the session stopped")

    async def _all_have_saved(self) -> None:
        while True:
            await self._is_done.wait()
            # Another page may say a moment later that it saves, too.
            await asyncio.sleep(_ANOTHER_SECONDS)
            if self._is_done.is_set():
                return

    def begin(self) -> None:
        """Take note of a page that saves."""
        self._saving += 1
        self._has_begun.set()
        self._is_done.clear()

    def end(self) -> None:
        """Take note of a page that has saved."""
        self._saving -= 1
        if self._saving <= 0:
            self._is_done.set()


class ShutdownHandler(APIHandler):
    """Receives the pages' word that they have saved."""

    _track_activity = False

    def initialize(self, shutdown_notice: ShutdownNotice) -> None:
        """Take the server's shutdown_notice."""
        self.shutdown_notice = shutdown_notice

    @web.authenticated
    async def post(self, what: str) -> None:
        """Note that a page saves, or has saved."""
        if not self.shutdown_notice.is_said:
            raise web.HTTPError(409, "This session is not stopping.")
        if what == "saving":
            self.shutdown_notice.begin()
        else:
            self.shutdown_notice.end()
        self.set_status(204)
        self.finish()


def routes(
    base_url: str, shutdown_notice: ShutdownNotice
) -> list[tuple[str, type[APIHandler], dict[str, ShutdownNotice]]]:
    """Give the server's routes."""
    pattern = url_path_join(base_url, "portal/shutdown/(saving|saved)")
    return [(pattern, ShutdownHandler, {"shutdown_notice": shutdown_notice})]
