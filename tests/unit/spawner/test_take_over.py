"""An interrupted start goes on: JupyterHub's own user, and a stand-in for the way to Slurm."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.user import User

from spawner.gpu_spawner import GpuSlurmSpawner
from spawner.traits import SlurmTraits

SESSION = "a" * 32
STATE = {"session_id": SESSION, "session_options": {"gpus": 1}, "is_ready": False}
PORT = 40123


@pytest.fixture
def interrupted() -> Iterator[Any]:
    """The spawner of a start that the hub's end interrupted."""
    session = orm.new_session_factory("sqlite:///:memory:")()
    session.add(account := orm.User(name="ada"))
    session.commit()
    user = User(account, {"spawner_class": GpuSlurmSpawner}, session)
    record = user.orm_spawners[""]
    record.state, record.user_options = STATE, STATE["session_options"]
    record.oauth_client = orm.OAuthClient(identifier="x", secret="y")
    session.commit()
    spawner = user.spawners[""]
    spawner.user_options = record.user_options
    yield spawner
    session.close()
    session.bind.dispose()


@pytest.mark.parametrize("says_it", ["before", "meanwhile", "later"])
def test_the_port_is_heard_whenever_the_session_says_it(
    interrupted: Any, monkeypatch: pytest.MonkeyPatch, says_it: str
) -> None:
    async def sessions(username: str) -> dict[int, str]:
        if says_it == "meanwhile":
            assert interrupted.take_port(PORT)
        return {12: SESSION}

    client = SimpleNamespace(sessions=sessions)
    monkeypatch.setattr(SlurmTraits, "_shared", SimpleNamespace(client=client))

    async def go_on() -> int:
        if says_it == "before":
            assert interrupted.take_port(PORT)
        assert await interrupted._take_over()
        if says_it == "later":
            assert interrupted.take_port(PORT)
        return int(await interrupted._port_awaited)

    assert asyncio.run(go_on()) == PORT
    assert interrupted.job_id == "12"
