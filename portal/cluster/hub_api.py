"""What the cluster page asks of the hub's REST API."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from tornado.httpclient import AsyncHTTPClient, HTTPRequest

_SECONDS = 20.0
_PAGINATION = "application/jupyterhub-pagination+json"


@dataclass(frozen=True)
class HubSession:
    """A server of the hub that runs or is about to, as the hub knows it."""

    user: str
    groups: tuple[str, ...]
    server: str
    """The server's name; empty for the user's unnamed one."""
    is_ready: bool
    job_id: int | None
    """``None`` before the job is submitted."""
    gpus: int | None
    started: datetime | None
    idle_seconds: int | None
    """For how long it was not used, by its own word; ``None`` before it has said so."""
    idle_heard_at: datetime | None


@dataclass(frozen=True)
class HubApi:
    """The hub, as the page sees it. Raises tornado's `HTTPClientError`, and `OSError`."""

    url: str
    """``JUPYTERHUB_API_URL``."""
    token: str
    """The service's own, which can only read."""

    async def sessions(self) -> list[HubSession]:
        """Return the sessions of all users."""
        return [session async for user in self._users() for session in sessions_of(user)]

    async def stop(self, user: str, server: str, token: str) -> None:
        """Stop a user's server by the right of whom the token is of, not by the page's."""
        path = f"/users/{quote(user, safe='')}"
        path += f"/servers/{quote(server, safe='')}" if server else "/server"
        await self._fetch("DELETE", path, token)

    async def _users(self) -> AsyncIterator[dict[str, Any]]:
        offset: int | None = 0
        while offset is not None:
            path = f"/users?state=active&offset={offset}"
            page = json.loads(await self._fetch("GET", path, self.token))
            for user in page["items"]:
                yield user
            following = page["_pagination"]["next"]
            offset = int(following["offset"]) if following else None

    async def _fetch(self, method: str, path: str, token: str) -> bytes:
        answer = await AsyncHTTPClient().fetch(
            HTTPRequest(
                self.url + path,
                method=method,
                headers={"Authorization": f"token {token}", "Accept": _PAGINATION},
                request_timeout=_SECONDS,
            )
        )
        return bytes(answer.body)


def sessions_of(user: Mapping[str, Any]) -> list[HubSession]:
    """Read the servers of a user of the hub's list."""
    return [_session(user, server) for server in user.get("servers", {}).values()]


def _session(user: Mapping[str, Any], server: Mapping[str, Any]) -> HubSession:
    state = server.get("state") or {}
    return HubSession(
        user=user["name"],
        groups=tuple(user.get("groups") or ()),
        server=server["name"],
        is_ready=bool(server["ready"]),
        job_id=int(state["job_id"]) if state.get("job_id") else None,
        gpus=state.get("held_gpus"),
        started=_moment(server.get("started")),
        idle_seconds=state.get("idle_seconds"),
        idle_heard_at=_moment(state.get("idle_heard_at")),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
