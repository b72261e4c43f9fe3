"""Storage notices for the landing screen: mounts that do not respond, and storage nearly full.

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

    async def mounts(self) -> list[dict[str, Any]]:
        """List the mounts that are not as they should be, with the home's links to them."""
        troubled = self._mounts.troubled()
        names = await self._mounts.in_time(lambda: [self._link_to(one.point) for one in troubled])
        return [{**asdict(one), "name": name} for one, name in zip(troubled, names, strict=True)]

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
        # Nor is another dead one touched on the way to it.
        points = self._mounts.dead() | {point}
        places = {"~": str(self._home), **self._folders}
        leads = (name for name, to in places.items() if first_on_the_way(to, points) == point)
        return next(leads, "")


def is_nearly_full(use: StorageUse) -> bool:
    """Say whether the user should hear of it. What is set aside for root is neither."""
    mine = use.used + use.free
    return mine > 0 and use.used / mine >= NEARLY_FULL


class NoticesHandler(APIHandler):
    """GET handler of the storage notices."""

    # A page asks by itself: no sign that somebody works.
    _track_activity = False

    def initialize(self, notices: Notices) -> None:
        """Take the session's notices."""
        self.notices = notices

    @web.authenticated
    async def get(self) -> None:
        """Give what is to be said."""
        storages = await self.notices.storages()
        mounts = await self.notices.mounts()
        self.finish(json.dumps({"mounts": mounts, "storages": storages}))


def routes(base_url: str, notices: Notices) -> list[tuple[str, type[APIHandler], dict[str, Any]]]:
    """Give the server's route."""
    return [(url_path_join(base_url, "portal/notices"), NoticesHandler, {"notices": notices})]
