"""Spawners without a hub, beside a stand-in for Slurm."""

from collections.abc import Iterator
from typing import Any

import pytest

from jupyterhub_gpu_slurm.session import job as session_job
from jupyterhub_gpu_slurm.session import start as session_start
from jupyterhub_gpu_slurm.spawner import GpuSlurmSpawner
from jupyterhub_gpu_slurm.traits import SpawnerTraits
from tests.unit.spawner.slurm_stand_in import NUMBER, SESSION, StandIn
from tests.unit.spawner.stand_in import spawner_of, stand_in_for_slurm


@pytest.fixture(autouse=True)
def unconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the connection to Slurm that another has made."""
    monkeypatch.setattr(SpawnerTraits, "_connection", None)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nobody wait between two looks."""
    monkeypatch.setattr(session_start, "_INTERVAL", 0.001)
    for name in ("_ENDING_INTERVAL", "_LATE_COMER_SECONDS"):
        monkeypatch.setattr(session_job, name, 0.001)
    monkeypatch.setattr(session_job, "_RETRY_SECONDS", (0,))
    monkeypatch.setattr(session_job, "_LAST_WORD_SECONDS", 0.1)


@pytest.fixture
def slurm(quick: None, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """What the hub's spawners ask."""
    monkeypatch.setattr(GpuSlurmSpawner, "_endings", {})
    return stand_in_for_slurm(monkeypatch)


@pytest.fixture
def spawner(slurm: StandIn) -> Iterator[Any]:
    """The spawner of a user who asks for two GPUs."""
    with spawner_of("ada", {"session_python": "/opt/session/bin/python"}) as spawner:
        spawner.user_options = {"gpus": 2}
        spawner.log.propagate = True
        yield spawner


@pytest.fixture
def session(spawner: Any) -> Any:
    """The spawner of a session that can be used."""
    spawner.load_state({"session_id": SESSION, "job_id": f"{NUMBER}", "is_ready": True})
    return spawner


@pytest.fixture
def interrupted(spawner: Any) -> Any:
    """The spawner of a start that the hub's end interrupted."""
    state = {"session_id": SESSION, "session_options": {"gpus": 2}, "client_secret": "first"}
    spawner.load_state(state)
    return spawner
