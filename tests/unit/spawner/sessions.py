"""Sessions in the tests of the spawner: how they are started, and what is left of them."""

import asyncio
from typing import Any

import pytest
from jupyterhub.spawner import SpawnException

from tests.unit.spawner.slurm_stand_in import PORT


def started(spawner: Any, *, says_port: bool = True) -> str:
    """Start; the session says its port once its job is submitted."""

    async def start() -> str:
        starting = asyncio.create_task(spawner.start())
        while says_port and not starting.done():
            if spawner.job_id and spawner.take_port(PORT):
                break
            await asyncio.sleep(0.001)
        return str(await asyncio.wait_for(starting, 20))

    return asyncio.run(start())


def failure(spawner: Any) -> SpawnException:
    """Return how a start fails whose session never says its port."""
    with pytest.raises(SpawnException) as raised:
        started(spawner, says_port=False)
    return raised.value


def saved_state(spawner: Any) -> dict[str, Any]:
    """Return what a hub would find that is started anew."""
    return dict(spawner.orm_spawner.state)
