"""Use of the storage in the file browser, for the page.

``GET /portal/quota?path=isilon/data`` tells of the file system that a path of contents leads to.
"""

import json
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from dsportal.session.files.quota import QuotaUnknown, Storage


class QuotaHandler(APIHandler):
    """Tells the page how full the storage is."""

    # A page asks by itself: no sign that somebody works.
    _track_activity = False

    def initialize(self, storage: Storage) -> None:
        """Take the session's view of its storage."""
        self.storage = storage

    @web.authenticated
    async def get(self) -> None:
        """Give name and use of the storage that a path is on."""
        path = self.get_query_argument("path", "", strip=False)
        if "\0" in path or path.startswith("/") or ".." in PurePosixPath(path).parts:
            raise web.HTTPError(400, "path must be below the home.")
        name = self.storage.name_of(path)
        try:
            use = await self.storage.use(path)
        except QuotaUnknown as error:
            raise web.HTTPError(404, f"The use of this storage is not known: {error}") from error
        self.finish(json.dumps({"name": name, **asdict(use)}))


def routes(base_url: str, storage: Storage) -> list[tuple[str, type[APIHandler], dict[str, Any]]]:
    """Give the server's route."""
    return [(url_path_join(base_url, "portal/quota"), QuotaHandler, {"storage": storage})]
