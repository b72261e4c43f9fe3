"""A session's job by itself: no JupyterHub, and a stand-in for Slurm."""

import asyncio
from typing import Any

import pytest

from jupyterhub_gpu_slurm.errors import AccountUnavailable, CommandTimedOut
from jupyterhub_gpu_slurm.session.job import SessionJob
from jupyterhub_gpu_slurm.session.observation import Ending
from jupyterhub_gpu_slurm.slurm.records import Job
from tests.unit.spawner.slurm_stand_in import JOB_ID, NO_ACCOUNT, NUMBER, SESSION, Ear, StandIn, run


def test_it_is_submitted_found_and_cancelled(job: SessionJob, slurm: StandIn) -> None:
    assert run(job.submit(SESSION, "#!/bin/sh", "{}")) == JOB_ID
    slurm.listed = {7: "b" * 32, NUMBER: SESSION}
    assert run(job.find(SESSION)) == JOB_ID
    assert run(job.cancel(SESSION)) == [NUMBER]
    assert slurm.told() == ["submit", "sessions", "cancel"]


def test_one_that_is_not_there_has_no_number(job: SessionJob, slurm: StandIn) -> None:
    slurm.listed = {7: "b" * 32}
    assert run(job.find(SESSION)) == ""


def test_a_new_start_knows_nothing_of_the_one_before(job: SessionJob, slurm: StandIn) -> None:
    slurm.words = [Job(NUMBER, "FAILED")]
    run(job.record_end(slurm.words[0]))
    run(job.look(JOB_ID))
    job.begin()
    assert (job.last, job.exit_status) == (None, None)


def test_an_end_that_two_see_at_once_is_told_once(
    job: SessionJob, slurm: StandIn, ear: Ear
) -> None:
    slurm.words = [Job(NUMBER, "CANCELLED")]

    async def both() -> list[str | None]:
        looks = (job.check(SESSION, JOB_ID, is_ready=True) for _ in range(2))
        return list(await asyncio.gather(*looks))

    first, second = run(both())
    assert first == second
    assert "cancelled" in str(first)
    assert ear.ends == [Ending.CANCELLED]


@pytest.mark.parametrize(("failures", "is_done"), [((CommandTimedOut("?"),), False), ((), True)])
def test_a_requeued_job_is_over_once_slurm_takes_the_order(
    job: SessionJob, slurm: StandIn, ear: Ear, failures: tuple[Any, ...], is_done: bool
) -> None:
    slurm.failures = list(failures)
    slurm.words = [Job(NUMBER, "PENDING")]
    assert (run(job.check(SESSION, JOB_ID, is_ready=True)) is not None) is is_done
    assert ear.ends == ([Ending.REQUEUED] if is_done else [])
    assert job.exit_status == (1 if is_done else None)


def test_a_job_that_runs_is_not_lost_with_its_reservation(
    job: SessionJob, slurm: StandIn, ear: Ear
) -> None:
    slurm.words = [Job(NUMBER, "RESV_DEL_HOLD", node="node001")]
    assert run(job.check(SESSION, JOB_ID, is_ready=True)) is None
    assert slurm.orders == []
    assert ear.ends == []


def test_the_operator_is_asked_only_for_a_job_with_a_number(
    job: SessionJob, slurm: StandIn
) -> None:
    slurm.failures = [NO_ACCOUNT]
    assert run(job.cancel(SESSION, JOB_ID)) == [NUMBER]
    assert slurm.orders[-1] == ("end", "ada", SESSION, NUMBER)
    slurm.failures = [NO_ACCOUNT] * 3
    with pytest.raises(AccountUnavailable):
        run(job.cancel(SESSION))


def test_nothing_is_forgotten_of_a_job_without_a_number(job: SessionJob, slurm: StandIn) -> None:
    job.forget("")
    assert slurm.forgotten == []
