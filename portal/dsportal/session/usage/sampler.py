"""The sampler of the session's resource use, whether a page is open or not.

``GET /portal/use`` tells all of it; with ``?since=N``, what came after sample N.
``GET /portal/use/now`` tells the last sample's processor and memory: Home asks.
"""

import json
import logging
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from dsportal.session.periodic import repeat
from dsportal.session.usage.history import EVERY_SECONDS, History
from dsportal.session.usage.meter import Meter

log = logging.getLogger(__name__)


class UseWatch:
    """Takes a sample every ten seconds."""

    def __init__(self, meter: Meter, every_seconds: float = EVERY_SECONDS) -> None:
        self._meter = meter
        self._every_seconds = every_seconds
        self.history = History(meter.held)

    async def run(self) -> None:
        """Go on as long as the session runs."""

        async def sample() -> None:
            self.history.add(await self._meter.read())

        every = self._every_seconds
        await repeat(sample, lambda: every, log, "What the session uses could not be read")


class UseHandler(APIHandler):
    """GET handler of the samples, for the page."""

    # A page asks by itself: no sign that somebody works.
    _track_activity = False

    def initialize(self, watch: UseWatch) -> None:
        """Take the session's watch."""
        self.watch = watch

    @web.authenticated
    async def get(self) -> None:
        """Give the samples that the page lacks."""
        since = self.get_query_argument("since", "0")
        if not since.isdecimal() or len(since) > 9:
            raise web.HTTPError(400, f"since={since}: the number of a sample is wanted, such as 42")
        self.finish(json.dumps(self.watch.history.tell(int(since)), separators=(",", ":")))


class NowHandler(APIHandler):
    """GET handler of the newest sample, for Home."""

    _track_activity = False

    def initialize(self, watch: UseWatch) -> None:
        """Take the session's watch."""
        self.watch = watch

    @web.authenticated
    async def get(self) -> None:
        """Give what is used now."""
        self.finish(json.dumps(self.watch.history.now()))


def routes(base_url: str, watch: UseWatch) -> list[tuple[str, type[APIHandler], dict[str, Any]]]:
    """Give the server's route."""
    return [
        (url_path_join(base_url, "portal/use"), UseHandler, {"watch": watch}),
        (url_path_join(base_url, "portal/use/now"), NowHandler, {"watch": watch}),
    ]
