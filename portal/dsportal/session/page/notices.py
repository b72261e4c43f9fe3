"""What the landing screen says of the storage: what does not answer, and what is nearly full.

``GET /portal/notices`` is asked by each page once a minute. What nobody knows is left out.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from dsportal.session.files.mounts import Mounts, first_on_the_way
from dsportal.session.files.quota import QuotaUnknown, Storage, StorageUse

NEARLY_FULL = 0.9


class Notices:
    """Looks at mounts and storages."""

    def __init__(
        self, mounts: Mounts, storage: Storage, home: Path, folders: Mapping[str, str]
    ) -> None:
        """``folders``: links in the home, and where they lead."""
        self._mounts, self._storage, self._home, self._folders = mounts, storage, home, folders

    def mounts(self) -> list[dict[str, Any]]:
        """List the mounts that are not as they should be, with the home's links to them."""
        return [
            {**asdict(trouble), "name": self._link_to(trouble.point)}
            for trouble in self._mounts.troubled()
        ]

    async def storages(self) -> list[dict[str, Any]]:
        """List the storages that are nearly full, each once."""
        found: dict[str, dict[str, Any]] = {}
        for name in ("", *sorted(self._folders)):
            try:
                use = await self._storage.use(name)
            except QuotaUnknown:
                continue
            if is_nearly_full(use):
                found.setdefault(use.mount, {"name": name, **asdict(use)})
        return list(found.values())

    def _link_to(self, point: str) -> str:
        if first_on_the_way(str(self._home), {point}):
            return "~"
        names = [name for name, to in self._folders.items() if first_on_the_way(to, {point})]
        return names[0] if names else ""


def is_nearly_full(use: StorageUse) -> bool:
    """Say whether the user should hear of it. What is set aside for root is neither."""
    mine = use.used + use.free
    return mine > 0 and use.used / mine >= NEARLY_FULL


class NoticesHandler(APIHandler):
    """Tells the page."""

    # A page asks by itself: no sign that somebody works.
    _track_activity = False

    def initialize(self, notices: Notices) -> None:
        """Take the session's notices."""
        self.notices = notices

    @web.authenticated
    async def get(self) -> None:
        """Give what is to be said."""
        storages = await self.notices.storages()
        self.finish(json.dumps({"mounts": self.notices.mounts(), "storages": storages}))


def routes(base_url: str, notices: Notices) -> list[tuple[str, type[APIHandler], dict[str, Any]]]:
    """Give the server's route."""
    return [(url_path_join(base_url, "portal/notices"), NoticesHandler, {"notices": notices})]
