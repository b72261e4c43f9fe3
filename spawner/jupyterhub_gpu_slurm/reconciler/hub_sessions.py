"""The reconciler's calls of the hub's REST API."""

import ssl
from typing import Any

from jupyterhub_gpu_slurm.hub_rest import HubRest, server_path
from jupyterhub_gpu_slurm.reconciler.reconciliation import KnownSession

_SECONDS = 60.0


class ReconcilerHubApi:
    """The hub, as the reconciler sees it. Raises tornado's `HTTPClientError`, and `OSError`."""

    def __init__(self, url: str, token: str, tls: ssl.SSLContext | None = None) -> None:
        """``url`` is ``JUPYTERHUB_API_URL``."""
        self._hub = HubRest(url, token, _SECONDS, tls)

    async def sessions(self) -> list[KnownSession]:
        """Return the sessions of all servers, stopped ones too."""
        users = self._hub.users("include_stopped_servers=1")
        return [session async for user in users for session in _sessions_of(user)]

    async def start(self, username: str, server_name: str) -> None:
        """Start a server with the options that it had."""
        await self._hub.fetch("POST", server_path(username, server_name), body="")


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
