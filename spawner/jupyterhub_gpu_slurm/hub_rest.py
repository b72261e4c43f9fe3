"""A client for the hub's REST API, for the hub's own services."""

import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tornado.httpclient import AsyncHTTPClient, HTTPRequest

_PAGINATION = "application/jupyterhub-pagination+json"


@dataclass(frozen=True)
class HubRest:
    """The hub, for who holds a token. Raises tornado's `HTTPClientError`, and `OSError`."""

    url: str
    """``JUPYTERHUB_API_URL``."""
    token: str
    seconds: float
    """How long one answer may take."""
    tls: ssl.SSLContext | None = None
    """How the hub is spoken to; ``None``: without TLS."""

    async def users(self, query: str) -> AsyncIterator[dict[str, Any]]:
        """Give all users with their servers, page by page."""
        offset: int | None = 0
        while offset is not None:
            page = json.loads(await self.fetch("GET", f"/users?{query}&offset={offset}"))
            for user in page["items"]:
                yield user
            following = page["_pagination"]["next"]
            offset = int(following["offset"]) if following else None

    async def fetch(
        self, method: str, path: str, *, token: str | None = None, **request: Any
    ) -> bytes:
        """Ask, with another token than the service's where one is given."""
        answer = await AsyncHTTPClient().fetch(
            HTTPRequest(
                self.url + path,
                method=method,
                headers={"Authorization": f"token {token or self.token}", "Accept": _PAGINATION},
                request_timeout=self.seconds,
                ssl_options=self.tls,
                **request,
            )
        )
        return bytes(answer.body)


def server_path(user: str, server: str) -> str:
    """Return a server's path; an empty name is the user's unnamed one's."""
    path = f"/users/{quote(user, safe='')}"
    return f"{path}/servers/{quote(server, safe='')}" if server else f"{path}/server"
