"""More time for a running session; no JupyterHub, and a stand-in for Slurm."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.errors import CommandTimedOut, ExtensionRefused, Refusal
from jupyterhub_gpu_slurm.options.policy import Limits, PartitionLimit
from jupyterhub_gpu_slurm.session.deadline import ExtensionRules
from jupyterhub_gpu_slurm.session.record import SessionRecord
from jupyterhub_gpu_slurm.session.time_extension import TimeExtension
from jupyterhub_gpu_slurm.slurm.records import Job
from tests.unit.spawner.slurm_stand_in import NUMBER, StandIn, connection_of

ID = "a" * 32
START = datetime.now(UTC) - timedelta(hours=1)


@pytest.fixture
def counted() -> list[int]:
    """How often it was extended, each time that the record was written."""
    return []


@pytest.fixture
def record(counted: list[int]) -> SessionRecord:
    kept = SessionRecord(lambda: counted.append(kept.state.extensions), lambda _: None)
    kept.note(id=ID, is_ready=True)
    return kept


@pytest.fixture
def slurm() -> StandIn:
    end = START + timedelta(hours=2)
    return StandIn([Job(NUMBER, "RUNNING", None, "ada", "sxm2", "node001", START, end)])


@pytest.fixture
def time(record: SessionRecord, slurm: StandIn) -> TimeExtension:
    async def limits() -> Limits:
        return Limits((PartitionLimit("sxm2", 4, timedelta(hours=24)),))

    connection = cast("SlurmConnection", connection_of(slurm))
    rules = ExtensionRules(timedelta(hours=4), 2)
    log = logging.getLogger("test")
    return TimeExtension(connection, "ada", record, lambda: NUMBER, limits, rules, log)


def extend(time: TimeExtension, minutes: int) -> Any:
    return asyncio.run(time.extend(minutes))


def test_the_job_gets_its_time_so_far_and_the_minutes(
    time: TimeExtension, record: SessionRecord, slurm: StandIn
) -> None:
    extend(time, 30)
    assert slurm.orders == [("extend", "ada", ID, NUMBER, 150)]
    assert record.state.extensions == 1
    # What is offered is Slurm's word of now, not that of a while ago.
    assert slurm.ages == [0, 0]


def test_it_is_counted_before_slurm_is_asked(
    time: TimeExtension, record: SessionRecord, slurm: StandIn
) -> None:
    slurm.failures = [CommandTimedOut("Slurm does not answer.")]
    with pytest.raises(CommandTimedOut):
        extend(time, 30)
    # It may have been carried out all the same.
    assert record.state.extensions == 1


def test_one_that_slurm_refuses_does_not_count(
    time: TimeExtension, counted: list[int], slurm: StandIn
) -> None:
    slurm.failures = [ExtensionRefused("No.")]
    with pytest.raises(ExtensionRefused):
        extend(time, 30)
    assert counted == [1, 0]


def test_no_more_than_the_rules_allow(
    time: TimeExtension, record: SessionRecord, slurm: StandIn
) -> None:
    extend(time, 10)
    extend(time, 10)
    with pytest.raises(Refusal):
        extend(time, 10)
    assert len(slurm.orders) == record.state.extensions == 2


def test_two_at_once_are_checked_one_after_the_other(
    time: TimeExtension, record: SessionRecord, slurm: StandIn
) -> None:
    async def three() -> list[object]:
        asked = (time.extend(10) for _ in range(3))
        return list(await asyncio.gather(*asked, return_exceptions=True))

    refused = [end for end in asyncio.run(three()) if isinstance(end, Exception)]
    assert len(refused) == 1
    assert record.state.extensions == 2


@pytest.mark.parametrize("failures", [[], [ExtensionRefused("No.")]], ids=["done", "refused"])
def test_a_session_that_ends_meanwhile_is_not_written_or_asked_for(
    time: TimeExtension,
    record: SessionRecord,
    counted: list[int],
    slurm: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    failures: list[ExtensionRefused],
) -> None:
    record.note(extensions=1)

    async def end(*_: object) -> None:
        record.forget()
        if failures:
            raise failures[0]

    monkeypatch.setattr(slurm, "extend", end)
    with pytest.raises((Refusal, ExtensionRefused)):
        extend(time, 30)
    assert counted == [2]
    assert len(slurm.ages) == 1
