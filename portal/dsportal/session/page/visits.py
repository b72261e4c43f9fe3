"""An audit of visits by others than the session's user: for the log, and for the user to see.

Only members of ``access.server_access_groups`` may. A request with a token of the session's user
counts as the user's.
"""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

log = logging.getLogger(__name__)

# One who comes back after so long is told of again.
_VISIT_SECONDS = 3600.0
_MOST_KEPT = 100


@dataclass(frozen=True)
class Visit:
    """A visit by another user; ``at`` is in seconds since 1970."""

    name: str
    at: int


class Visits:
    """Records visits by others than the owner, each once in a while."""

    def __init__(self, owner: str, now: Callable[[], float] = time.time) -> None:
        self._owner, self._now = owner, now
        self._visits: list[Visit] = []
        self._seen_at: dict[str, float] = {}

    def note(self, name: str) -> None:
        """Take note of somebody who was let in."""
        if name == self._owner:
            return
        if self._now() - self._seen_at.get(name, 0.0) > _VISIT_SECONDS:
            log.warning("%s entered this session of %s", name, self._owner)
            self._visits = [*self._visits, Visit(name, round(self._now()))][-_MOST_KEPT:]
        self._seen_at[name] = self._now()

    def tell(self) -> dict[str, Any]:
        """Give what the page shows."""
        return {"visits": [asdict(visit) for visit in self._visits]}


class VisitsHandler(APIHandler):
    """GET handler of the visits."""

    _track_activity = False

    def initialize(self, visits: Visits) -> None:
        """Take the session's visits."""
        self.visits = visits

    @web.authenticated
    async def get(self) -> None:
        """Give them, the oldest first."""
        self.finish(json.dumps(self.visits.tell()))


def routes(base_url: str, visits: Visits) -> list[tuple[str, type[APIHandler], dict[str, Any]]]:
    """Give the server's route."""
    return [(url_path_join(base_url, "portal/visits"), VisitsHandler, {"visits": visits})]
