"""A stand-in for Slurm, and what it says of a session's job. Nothing here needs JupyterHub."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from jupyterhub_gpu_slurm.errors import (
    AccountUnavailable,
    CommandTimedOut,
    SlurmError,
    SpawnerError,
)
from jupyterhub_gpu_slurm.outlook.availability import AvailabilityCounter
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.session.observation import Ending
from jupyterhub_gpu_slurm.shared_answer import SharedAnswer
from jupyterhub_gpu_slurm.slurm.associations import Association
from jupyterhub_gpu_slurm.slurm.queue_positions import QueuePosition
from jupyterhub_gpu_slurm.slurm.records import Cluster, Gres, Job, Node, Partition
from jupyterhub_gpu_slurm.slurm.watcher import PollIntervals

NODE = Node("node001", "10.0.0.1", (Gres("gpu", "v100", 4),), 40, 384 * 1024, is_up=True)
CLUSTER = Cluster((Partition("sxm2", True, True, None, None, (NODE,)),))
NUMBER = 12
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


@dataclass
class StandIn:
    """Says of the job what it is told to, and remembers what it is asked to do.

    ``words`` are said one after another, the last of them for ever. An order fails with the next
    of ``failures``, as long as there are some.
    """

    pace = PollIntervals(busy=1.0, waiting=5.0, quiet=10.0)
    operator = ""
    words: list[Job] = field(default_factory=list)
    failures: list[SpawnerError] = field(default_factory=list)
    operator_failures: list[SpawnerError] = field(default_factory=list)
    listed: dict[int, str] = field(default_factory=dict)
    cancelled: list[int] = field(default_factory=lambda: [NUMBER])
    log: list[str] | SlurmError = field(default_factory=list)
    orders: list[tuple[object, ...]] = field(default_factory=list)
    ages: list[float | None] = field(default_factory=list)
    hurried: list[bool] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)
    associations: tuple[Association, ...] | SlurmError = ()
    while_submitting: Callable[[], object] = lambda: None

    async def submit(self, username: str, session: str, script: str, session_input: str) -> int:
        self._obey("submit", username, session, script, session_input)
        self.while_submitting()
        return NUMBER

    async def sessions(self, username: str) -> dict[int, str]:
        self._obey("sessions", username)
        return self.listed

    async def cancel(self, username: str, session: str) -> list[int]:
        self._obey("cancel", username, session)
        return self.cancelled

    async def end(self, username: str, session: str, job_id: int) -> list[int]:
        self.orders.append(("end", username, session, job_id))
        if self.operator_failures:
            raise self.operator_failures.pop(0)
        return [job_id]

    async def extend(self, username: str, session: str, job_id: int, minutes: int) -> None:
        self._obey("extend", username, session, job_id, minutes)

    async def log_tail(self, username: str, job_id: int) -> list[str]:
        if isinstance(self.log, SlurmError):
            raise self.log
        return [f"{username} {job_id}", *self.log]

    async def job(
        self, job_id: int, max_age: float | None = None, *, is_hurried: bool = False
    ) -> Job:
        await asyncio.sleep(0)
        assert job_id == NUMBER
        self.ages.append(max_age)
        self.hurried.append(is_hurried)
        return self.words.pop(0) if len(self.words) > 1 else self.words[0]

    async def cluster(self) -> Cluster:
        await asyncio.sleep(0)
        return CLUSTER

    async def of(self, username: str) -> tuple[Association, ...]:
        if isinstance(self.associations, SlurmError):
            raise self.associations
        return self.associations

    async def queue_positions(self) -> dict[int, QueuePosition]:
        return {NUMBER: QueuePosition(2, 3, "sxm2")}

    # What the hub's metrics ask.
    is_answering = None

    def look(self) -> None:
        """Nothing is known of the cluster."""

    def forget(self, job_id: int) -> None:
        self.forgotten.append(job_id)

    def told(self) -> list[object]:
        """Return the names of the orders, in their order."""
        return [order[0] for order in self.orders]

    def _obey(self, *order: object) -> None:
        self.orders.append(order)
        if self.failures:
            raise self.failures.pop(0)


class Ear:
    """Hears of a job."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.ends: list[Ending] = []

    def note_job(self, job: Job) -> None:
        self.seen.append(job.slurm_state)

    def note_end(self, ending: Ending, job: Job | None) -> None:
        self.ends.append(ending)


def connection_of(slurm: StandIn) -> SimpleNamespace:
    """Give the connection through which all questions go to this stand-in."""
    return SimpleNamespace(
        client=slurm,
        jobs=slurm,
        nodes=slurm,
        free=AvailabilityCounter(ResourceShape()),
        accounts=slurm,
        queue_positions=SharedAnswer(slurm.queue_positions, 0.0),
    )
