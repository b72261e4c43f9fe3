"""A client of the hub's REST API, for the cluster page."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jupyterhub_gpu_slurm.hub_rest import HubRest, server_path

_SECONDS = 20.0


@dataclass(frozen=True)
class ListedSession:
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
    """For how long it was not used, by its own word; ``None``: it has not said so lately."""
    idle_heard_at: datetime | None


class ClusterHubApi:
    """The hub, as the page sees it. Raises tornado's `HTTPClientError`, and `OSError`."""

    def __init__(self, url: str, token: str, tls: ssl.SSLContext | None = None) -> None:
        """``url`` is ``JUPYTERHUB_API_URL``, ``token`` the service's own, which can only read."""
        self._hub = HubRest(url, token, _SECONDS, tls)

    async def sessions(self) -> list[ListedSession]:
        """Return the sessions of all users."""
        users = self._hub.users("state=active")
        return [session async for user in users for session in sessions_of(user)]

    async def stop(self, user: str, server: str, token: str) -> None:
        """Stop a user's server by the right of whom the token is of, not by the page's."""
        await self._hub.fetch("DELETE", server_path(user, server), token=token)


def sessions_of(user: Mapping[str, Any]) -> list[ListedSession]:
    """Read the servers of a user of the hub's list."""
    return [_session(user, server) for server in user.get("servers", {}).values()]


def _session(user: Mapping[str, Any], server: Mapping[str, Any]) -> ListedSession:
    state = server.get("state") or {}
    return ListedSession(
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
