"""Sessions in the tests of the spawner: what Slurm says of their job, and how they are started."""

import asyncio
from typing import Any

import pytest
from jupyterhub.spawner import SpawnException

from jupyterhub_gpu_slurm.errors import AccountUnavailable, CommandTimedOut
from jupyterhub_gpu_slurm.slurm.records import Job
from tests.unit.spawner.stand_in import NUMBER

PORT = 40123
SESSION = "a" * 32
JOB_ID = f"{NUMBER}"
SILENCE = CommandTimedOut("Slurm does not answer.")
NO_ACCOUNT = AccountUnavailable("The directory does not know ada.")


def job(state: str, node: str | None = "node001", reason: str | None = None) -> Job:
    return Job(NUMBER, state, reason, "ada", "sxm2", node)


WAITS, RUNS = job("PENDING", None, "Priority"), job("RUNNING")
COMPLETES, IS_CANCELLED, FAILED = job("COMPLETING"), job("CANCELLED"), job("FAILED")
UNKNOWN = Job(NUMBER, "")


def run(awaitable: Any) -> Any:
    return asyncio.run(asyncio.wait_for(awaitable, 10))


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
