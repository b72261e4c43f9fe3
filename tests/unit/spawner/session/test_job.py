"""A session's job by itself: no JupyterHub, and a stand-in for Slurm."""

import asyncio
import logging
from typing import Any, cast

import pytest

from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.errors import AccountUnavailable, CommandTimedOut, SessionEnded
from jupyterhub_gpu_slurm.session import job as session_job
from jupyterhub_gpu_slurm.session.job import JobLimits, SessionJob
from jupyterhub_gpu_slurm.session.observation import Ending
from jupyterhub_gpu_slurm.slurm.records import Job
from tests.unit.spawner.stand_in import NUMBER, StandIn, connection_of

ID = "a" * 32
JOB_ID = f"{NUMBER}"
RUNS = Job(NUMBER, "RUNNING", None, "ada", "sxm2", "node001")


class Ear:
    """Hears of the job."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.ends: list[Ending] = []

    def note_job(self, job: Job) -> None:
        self.seen.append(job.slurm_state)

    def note_end(self, ending: Ending, job: Job | None) -> None:
        self.ends.append(ending)


@pytest.fixture
def slurm() -> StandIn:
    return StandIn()


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def job(slurm: StandIn, ear: Ear, monkeypatch: pytest.MonkeyPatch) -> SessionJob:
    for name in ("STARTING_INTERVAL", "_ENDING_INTERVAL", "_LATE_COMER_SECONDS"):
        monkeypatch.setattr(session_job, name, 0.001)
    monkeypatch.setattr(session_job, "_RETRY_SECONDS", (0,))
    limits = JobLimits(launch=180, queue=3600, end=60)
    connection = cast("SlurmConnection", connection_of(slurm))
    return SessionJob(connection, "ada", "ada:", limits, "slurm", ear, logging.getLogger("test"))


def run(awaitable: Any) -> Any:
    return asyncio.run(asyncio.wait_for(awaitable, 10))


def test_it_is_submitted_found_and_cancelled(job: SessionJob, slurm: StandIn) -> None:
    assert run(job.submit(ID, "#!/bin/sh")) == JOB_ID
    slurm.listed = {7: "b" * 32, NUMBER: ID}
    assert run(job.find(ID)) == JOB_ID
    assert run(job.cancel(ID)) == [NUMBER]
    assert slurm.told() == ["submit", "sessions", "cancel"]


def test_one_that_is_not_there_has_no_number(job: SessionJob, slurm: StandIn) -> None:
    slurm.listed = {7: "b" * 32}
    assert run(job.find(ID)) == ""


def test_the_port_is_awaited_while_the_job_is_well(
    job: SessionJob, slurm: StandIn, ear: Ear
) -> None:
    async def started() -> int:
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.02, port.set_result, 40123)
        return await job.await_port(JOB_ID, port)

    slurm.words = [Job(NUMBER, "PENDING"), RUNS]
    assert run(started()) == 40123
    assert ear.seen[:2] == ["PENDING", "RUNNING"]
    assert job.last == RUNS


def test_a_job_that_fails_ends_the_wait_with_its_log(
    job: SessionJob, slurm: StandIn, ear: Ear
) -> None:
    async def started() -> int:
        return await job.await_port(JOB_ID, asyncio.get_running_loop().create_future())

    slurm.words, slurm.log = [RUNS, Job(NUMBER, "FAILED")], ["no such module"]
    with pytest.raises(SessionEnded, match="could not be started") as raised:
        run(started())
    assert "no such module" in raised.value.log_lines
    assert (ear.ends, job.exit_status) == ([Ending.FAILED], 1)
    assert slurm.forgotten == [NUMBER]


def test_a_new_start_knows_nothing_of_the_one_before(job: SessionJob, slurm: StandIn) -> None:
    slurm.words = [Job(NUMBER, "FAILED")]
    run(job.record_end(slurm.words[0]))
    run(job.look(JOB_ID))
    job.begin()
    assert (job.last, job.exit_status) == (None, None)


@pytest.mark.parametrize(("failures", "is_done"), [([CommandTimedOut("?")], False), ([], True)])
def test_a_requeued_job_is_over_once_slurm_takes_the_order(
    job: SessionJob, slurm: StandIn, ear: Ear, failures: list[Any], is_done: bool
) -> None:
    slurm.failures = failures
    assert run(job.end_requeued(ID, JOB_ID)) is is_done
    assert ear.ends == ([Ending.REQUEUED] if is_done else [])
    assert job.exit_status == (1 if is_done else None)


def test_the_operator_is_asked_only_for_a_job_with_a_number(
    job: SessionJob, slurm: StandIn
) -> None:
    gone = AccountUnavailable("The directory does not know ada.")
    slurm.failures = [gone]
    assert run(job.cancel(ID, JOB_ID)) == [NUMBER]
    assert slurm.orders[-1] == ("end", "slurm", "ada", ID, NUMBER)
    slurm.failures = [gone] * 3
    with pytest.raises(AccountUnavailable):
        run(job.cancel(ID))


def test_nothing_is_forgotten_of_a_job_without_a_number(job: SessionJob, slurm: StandIn) -> None:
    job.forget("")
    assert slurm.forgotten == []
