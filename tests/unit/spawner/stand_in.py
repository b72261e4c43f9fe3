"""A user of JupyterHub's with a spawner, in a database in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.objects import Hub
from jupyterhub.user import User
from traitlets.config import Config

from jupyterhub_gpu_slurm.spawner import GpuSlurmSpawner
from jupyterhub_gpu_slurm.traits import SpawnerTraits
from tests.unit.spawner.slurm_stand_in import StandIn, connection_of


def stand_in_for_slurm(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Put a stand-in where all spawners look for Slurm."""
    slurm = StandIn()
    monkeypatch.setattr(SpawnerTraits, "_connection", connection_of(slurm))
    return slurm


@cache
def _database() -> Any:
    """Make the tables once: it takes longer than most tests."""
    return orm.new_session_factory("sqlite:///:memory:")


@contextmanager
def spawner_of(name: str, settings: dict[str, Any] | None = None) -> Iterator[Any]:
    """Give the spawner of a user who has no session."""
    database = _database()()
    database.add(account := orm.User(name=name))
    database.commit()
    config = Config({"GpuSlurmSpawner": settings or {}})
    user = User(account, {"spawner_class": GpuSlurmSpawner, "config": config}, database)
    spawner = user.spawners[""]
    # What JupyterHub does before it calls `start`.
    client = orm.OAuthClient(identifier="jupyterhub", secret="hash")
    spawner.orm_spawner.oauth_client = client
    database.commit()
    spawner.hub = Hub(ip="hub.example.org", port=8081, base_url="/hub/")
    spawner.api_token = user.new_api_token()
    yield spawner
    database.rollback()
    for table in (orm.User, orm.OAuthClient):
        for row in database.query(table):
            database.delete(row)
    database.commit()
    database.close()
