"""A session's start by itself: no JupyterHub, and a stand-in for Slurm."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.errors import SessionEnded
from jupyterhub_gpu_slurm.session import start as session_start
from jupyterhub_gpu_slurm.session.deadline import StartLimits
from jupyterhub_gpu_slurm.session.job import SessionJob
from jupyterhub_gpu_slurm.session.observation import Ending
from jupyterhub_gpu_slurm.session.start import SessionStart
from jupyterhub_gpu_slurm.slurm.records import Job
from tests.unit.spawner.slurm_stand_in import (
    FAILED,
    JOB_ID,
    NUMBER,
    PORT,
    RUNS,
    SESSION,
    WAITS,
    Ear,
    StandIn,
    run,
)


@pytest.fixture
def start(connection: SlurmConnection, job: SessionJob) -> SessionStart:
    limits = StartLimits(launch=180, queue=3600)
    return SessionStart(connection, "ada", job, lambda: limits, logging.getLogger("test"))


def test_the_port_is_awaited_while_the_job_is_well(
    start: SessionStart, job: SessionJob, slurm: StandIn, ear: Ear
) -> None:
    async def started() -> int:
        start.expect_port()
        take_once_it_runs()
        return await start.await_port(JOB_ID)

    def take_once_it_runs() -> None:
        if "RUNNING" in ear.seen:
            start.take_port(PORT)
        else:
            asyncio.get_running_loop().call_later(0.001, take_once_it_runs)

    slurm.words = [WAITS, RUNS]
    assert run(started()) == PORT
    assert ear.seen[:2] == ["PENDING", "RUNNING"]
    assert job.last == RUNS


def test_where_a_server_that_listens_runs_is_not_put_off(
    start: SessionStart, slurm: StandIn
) -> None:
    slurm.words = [replace(RUNS, node=None), RUNS]
    assert run(start.address(JOB_ID)) == "10.0.0.1"
    # The first answer may be one that others have had.
    assert slurm.ages == [1.0, 0]
    assert slurm.hurried == [True, True]


def test_a_session_that_ends_as_soon_as_it_listens_says_why(
    start: SessionStart, slurm: StandIn
) -> None:
    slurm.words, slurm.log = [replace(FAILED, slurm_state="OUT_OF_MEMORY")], ["Killed"]
    with pytest.raises(SessionEnded, match="OUT_OF_MEMORY") as raised:
        run(start.address(JOB_ID))
    assert "Killed" in raised.value.log_lines


@pytest.mark.parametrize("word", ["CONFIGURING", "SUSPENDED"])
def test_a_node_that_boots_and_a_job_that_is_suspended_take_no_time_of_the_servers(
    connection: SlurmConnection, job: SessionJob, slurm: StandIn, word: str
) -> None:
    limits = StartLimits(launch=0.05, queue=3600)
    start = SessionStart(connection, "ada", job, lambda: limits, logging.getLogger("test"))

    async def started(port_after: float) -> int:
        start.expect_port()
        asyncio.get_running_loop().call_later(port_after, start.take_port, PORT)
        return await start.await_port(JOB_ID)

    slurm.words = [replace(RUNS, slurm_state=word)]
    assert run(started(port_after=0.3)) == PORT
    slurm.words = [RUNS]
    with pytest.raises(SessionEnded, match="did not answer"):
        run(started(port_after=60))


def test_a_job_that_fails_ends_the_wait_with_its_log(
    start: SessionStart, job: SessionJob, slurm: StandIn, ear: Ear
) -> None:
    async def started() -> int:
        start.expect_port()
        return await start.await_port(JOB_ID)

    slurm.words, slurm.log = [RUNS, FAILED], ["no such module"]
    with pytest.raises(SessionEnded, match="could not be started") as raised:
        run(started())
    assert "no such module" in raised.value.log_lines
    assert (ear.ends, job.exit_status) == ([Ending.FAILED], 1)
    assert slurm.forgotten == [NUMBER]


def test_a_port_is_taken_once_and_only_while_it_is_awaited(start: SessionStart) -> None:
    async def taken() -> list[bool]:
        answers = [start.take_port(PORT)]
        start.expect_port()
        answers += [start.take_port(PORT), start.take_port(PORT)]
        start.expect_port()
        start.end()
        return [*answers, start.take_port(PORT)]

    assert run(taken()) == [False, True, False, False]


def test_the_port_of_a_job_that_was_given_up_is_not_the_next_ones(
    start: SessionStart, slurm: StandIn
) -> None:
    async def started() -> int:
        start.expect_port()
        start.take_port(PORT)
        start.expect_port()
        asyncio.get_running_loop().call_later(0.02, start.take_port, PORT + 1)
        return await start.await_port(JOB_ID)

    slurm.words = [RUNS]
    assert run(started()) == PORT + 1


def test_an_interrupted_start_finds_its_job(start: SessionStart, slurm: StandIn) -> None:
    slurm.listed = {7: "b" * 32, NUMBER: SESSION}
    assert run(start.take_over(SESSION, "", is_wanted=True)) == JOB_ID
    assert start.take_port(PORT)
    assert slurm.told() == ["sessions"]


def test_one_that_is_not_wanted_any_more_is_cancelled(start: SessionStart, slurm: StandIn) -> None:
    assert run(start.take_over(SESSION, JOB_ID, is_wanted=False)) == ""
    assert slurm.orders == [("cancel", "ada", SESSION)]


def test_the_page_hears_each_news_once(start: SessionStart, job: SessionJob) -> None:
    async def heard(count: int, change: Callable[[], None]) -> list[dict[str, Any]]:
        said = []
        async for event in start.progress(lambda: 1, None, None):
            said.append(event)
            change()
            if len(said) == count:
                return said
        raise AssertionError("the progress has an end")

    def next_job() -> None:
        job.last = WAITS if job.last is None else RUNS

    start.begin()
    events = run(heard(3, next_job))
    first, second, third = (event["message"] for event in events)
    assert first.startswith("Submitting")
    assert "waiting in the queue" in second
    assert "is running on node001" in third
    # Its place in the queue is told while it waits.
    assert [event.get("position") for event in events] == [None, 2, None]
    assert len({event["since"] for event in events} - {None}) == 1


def test_no_news_is_not_told(start: SessionStart) -> None:
    async def second() -> None:
        events = start.progress(lambda: 1, None, None)
        await anext(events)
        await asyncio.wait_for(anext(events), 0.1)

    with pytest.raises(TimeoutError):
        asyncio.run(second())


def test_the_same_is_told_again_so_that_a_page_that_has_left_is_noticed(
    start: SessionStart, job: SessionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def both() -> list[dict[str, Any]]:
        events = start.progress(lambda: 1, None, None)
        return [await anext(events), await anext(events)]

    monkeypatch.setattr(session_start, "_AGAIN_SECONDS", 0.01)
    job.last = WAITS
    first, second = run(both())
    assert first.pop("now") < second.pop("now")
    assert first == second


@pytest.mark.parametrize(
    ("job_now", "gpus", "gpu_type", "feature", "told"),
    [
        (WAITS, 8, None, None, 4),
        (WAITS, 8, "v100", None, 4),
        # As many as asked for, of another type, and elsewhere: nothing that would help.
        (WAITS, 4, None, None, None),
        (WAITS, 8, "a100", None, None),
        (WAITS, 8, None, "nvlink", None),
        (replace(WAITS, partition="shareq"), 8, None, None, None),
        (RUNS, 8, None, None, None),
    ],
)
def test_a_job_that_waits_is_told_of_fewer_gpus_that_are_free(
    start: SessionStart,
    job: SessionJob,
    job_now: Job,
    gpus: int,
    gpu_type: str | None,
    feature: str | None,
    told: int | None,
) -> None:
    async def first() -> dict[str, Any]:
        return await anext(start.progress(lambda: gpus, gpu_type, feature))

    job.last = job_now
    assert run(first()).get("fewer_free") == told
