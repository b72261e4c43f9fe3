"""What the hub's REST API tells the reconciler."""

import asyncio
import json
from typing import Any

import pytest

from jupyterhub_gpu_slurm.hub_rest import HubRest
from jupyterhub_gpu_slurm.reconciler.hub_sessions import ReconcilerHubApi
from jupyterhub_gpu_slurm.reconciler.reconciliation import KnownSession

STARTING = {"session_id": "a" * 32}
READY = {"session_id": "b" * 32, "job_id": 7, "is_ready": True}


def sessions(monkeypatch: pytest.MonkeyPatch, **servers: tuple[bool, Any]) -> list[KnownSession]:
    items = {
        name: {"name": name, "stopped": stopped, "state": state}
        for name, (stopped, state) in servers.items()
    }
    page = {"items": [{"name": "ada", "servers": items}], "_pagination": {"next": None}}

    async def fetch(self: HubRest, method: str, path: str) -> bytes:
        # Without them, an interrupted start would be nobody's, and its job cancelled.
        assert (method, path) == ("GET", "/users?include_stopped_servers=1&offset=0")
        return json.dumps(page).encode()

    monkeypatch.setattr(HubRest, "fetch", fetch)
    return asyncio.run(ReconcilerHubApi("", "").sessions())


def test_what_was_stopped_before_it_was_ready_was_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = sessions(
        monkeypatch,
        cut=(True, STARTING),
        starting=(False, STARTING),
        ready=(False, READY),
        ending=(True, READY),
        empty=(True, None),
    )
    told = [(one.server_name, one.job_id, one.is_interrupted) for one in found]
    assert told == [
        ("cut", None, True),
        ("starting", None, False),
        ("ready", 7, False),
        ("ending", 7, False),
    ]
