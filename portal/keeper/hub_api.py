"""What the keeper asks of the hub's REST API."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from spawner.reconciliation import KnownSession

_SECONDS = 60.0
_PAGINATION = "application/jupyterhub-pagination+json"


@dataclass(frozen=True)
class HubApi:
    """The hub, as a service of it sees it. Raises tornado's `HTTPClientError`, and `OSError`."""

    url: str
    """``JUPYTERHUB_API_URL``."""
    token: str

    async def sessions(self) -> list[KnownSession]:
        """Return the sessions of all servers, stopped ones too."""
        return [session async for user in self._users() for session in _sessions_of(user)]

    async def start(self, username: str, server_name: str) -> None:
        """Start a server with the options that it had."""
        user = f"/users/{quote(username, safe='')}"
        server = f"/servers/{quote(server_name, safe='')}" if server_name else "/server"
        await self._fetch("POST", user + server, body="")

    async def _users(self) -> AsyncIterator[dict[str, Any]]:
        path: str | None = "/users?include_stopped_servers=1"
        while path is not None:
            page = json.loads(await self._fetch("GET", path))
            for user in page["items"]:
                yield user
            following = page["_pagination"]["next"]
            path = following and (
                f"/users?include_stopped_servers=1"
                f"&offset={following['offset']}&limit={following['limit']}"
            )

    async def _fetch(self, method: str, path: str, **request: Any) -> bytes:
        answer = await AsyncHTTPClient().fetch(
            HTTPRequest(
                self.url + path,
                method=method,
                headers={"Authorization": f"token {self.token}", "Accept": _PAGINATION},
                request_timeout=_SECONDS,
                **request,
            )
        )
        return bytes(answer.body)


def _sessions_of(user: dict[str, Any]) -> list[KnownSession]:
    found = []
    for server in user.get("servers", {}).values():
        state = server.get("state") or {}
        if state.get("session_id"):
            found.append(
                KnownSession(
                    username=user["name"],
                    server_name=server["name"],
                    session_id=state["session_id"],
                    job_id=int(state["job_id"]) if state.get("job_id") else None,
                    is_interrupted=not state.get("is_ready") and bool(server["stopped"]),
                )
            )
    return found
