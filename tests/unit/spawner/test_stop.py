"""The stop of a session."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from jupyterhub import orm

from jupyterhub_gpu_slurm.errors import ExtensionRefused, UnreadableOutput
from jupyterhub_gpu_slurm.session import job as session_job
from jupyterhub_gpu_slurm.session.state import SessionState
from jupyterhub_gpu_slurm.slurm.records import Job
from tests.unit.spawner.slurm_stand_in import (
    COMPLETES,
    IS_CANCELLED,
    NO_ACCOUNT,
    NUMBER,
    RUNS,
    SESSION,
    SILENCE,
    UNKNOWN,
    StandIn,
    run,
)


def stopped(spawner: Any, *, now: bool = False) -> None:
    how = {"now": True} if now else {}
    run(spawner.stop(**how))


def test_a_stop_waits_until_the_node_is_free(session: Any, slurm: StandIn) -> None:
    slurm.words = [RUNS, COMPLETES, UNKNOWN, IS_CANCELLED]
    stopped(session)
    assert slurm.orders == [("cancel", "ada", SESSION)]
    assert slurm.ages == [0, 0, 0, 0]
    assert slurm.forgotten == [NUMBER]


@pytest.mark.parametrize("last", [IS_CANCELLED, Job(NUMBER, "GONE")])
def test_it_is_free_when_slurm_says_so_or_knows_nothing(
    session: Any, slurm: StandIn, last: Job
) -> None:
    slurm.words = [COMPLETES, last]
    stopped(session)
    assert len(slurm.ages) == 2


def test_a_stop_in_haste_does_not_wait(session: Any, slurm: StandIn) -> None:
    slurm.words = [RUNS]
    stopped(session, now=True)
    assert (slurm.told(), slurm.ages) == (["cancel"], [])


def test_a_node_that_does_not_come_free_is_said_and_left(
    session: Any, slurm: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    session.end_timeout, slurm.words = 0.01, [COMPLETES]
    stopped(session)
    assert "still on its node after 0.01 s" in caplog.text


def test_nothing_to_stop_asks_nothing(spawner: Any, slurm: StandIn) -> None:
    stopped(spawner)
    assert slurm.orders == []


@pytest.mark.parametrize(("found", "looks"), [([], 5), ([NUMBER], 1)])
def test_a_job_without_a_number_is_looked_for_some_times(
    spawner: Any, slurm: StandIn, found: list[int], looks: int
) -> None:
    spawner.record.state, spawner.job_id, slurm.cancelled = SessionState(SESSION), "", found
    stopped(spawner)
    assert slurm.orders == [("cancel", "ada", SESSION)] * looks
    assert slurm.forgotten == []


def test_the_operator_ends_the_session_of_an_account_that_is_gone(
    session: Any, slurm: StandIn
) -> None:
    slurm.operator, slurm.failures, slurm.words = "slurm", [NO_ACCOUNT], [IS_CANCELLED]
    stopped(session)
    assert slurm.orders[1:] == [("end", "ada", SESSION, NUMBER)]
    assert slurm.forgotten == [NUMBER]


@pytest.mark.parametrize("operator", ["", "slurm"])
def test_a_stop_that_nobody_may_carry_out_is_left_to_the_reconciler(
    session: Any, slurm: StandIn, caplog: pytest.LogCaptureFixture, operator: str
) -> None:
    slurm.operator = operator
    slurm.failures, slurm.operator_failures = [NO_ACCOUNT] * 9, [NO_ACCOUNT] * 9
    stopped(session)
    assert slurm.told().count("cancel") == 3
    assert "the reconciler is to end it" in caplog.text
    assert slurm.forgotten == [NUMBER]


def test_without_a_number_no_operator_is_asked(spawner: Any, slurm: StandIn) -> None:
    spawner.record.state, spawner.job_id = SessionState(SESSION), ""
    slurm.operator, slurm.failures = "slurm", [NO_ACCOUNT] * 9
    stopped(spawner)
    assert slurm.told() == ["cancel"] * 3


def test_a_slurm_that_does_not_answer_is_asked_until_it_does(
    session: Any, slurm: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    slurm.failures = [SILENCE] * 4 + [UnreadableOutput("?")] * 5 + [NO_ACCOUNT]
    slurm.words = [IS_CANCELLED]
    stopped(session)
    assert slurm.told() == ["cancel"] * 11
    assert "Slurm does not take care of job 12 of ada yet" in caplog.text


def test_the_waits_between_two_tries_grow_and_then_stay(
    session: Any, slurm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    sleep = asyncio.sleep

    async def counted(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(session_job, "_RETRY_SECONDS", (1, 2, 5))
    monkeypatch.setattr("jupyterhub_gpu_slurm.session.job.asyncio.sleep", counted)
    slurm.failures, slurm.words = [SILENCE] * 5, [IS_CANCELLED]
    stopped(session)
    assert [seconds for seconds in waits if seconds] == [1, 2, 5, 5, 5]


def test_an_extension_that_ends_late_leaves_the_next_sessions_record_alone(
    session: Any, slurm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm was slow; meanwhile its user has stopped the session, and started another."""
    user, now = session.user, datetime.now(UTC)
    session.slurm_operator = "slurm"
    slurm.words = [replace(RUNS, start=now, end=now + timedelta(hours=1))]

    async def refuse(*_: object) -> None:
        # What JupyterHub does at the end of a stop, and at the next start.
        session.clear_state()
        user.spawners.pop("")
        user.spawners[""].record.save(id="b" * 32, token_id=7)
        raise ExtensionRefused("The job is over.")

    monkeypatch.setattr(slurm, "extend", refuse)
    with pytest.raises(ExtensionRefused):
        run(session.extend(30))
    assert session.orm_spawner.state["session_id"] == "b" * 32
    assert session.orm_spawner.state["token_id"] == 7


def test_a_number_that_was_given_to_anothers_token_revokes_nothing(session: Any) -> None:
    """As SQLite does while a site's hook runs after a stop."""
    database = session.user.db
    database.add(bob := orm.User(name="bob"))
    database.commit()
    bob.new_api_token()
    (token,) = bob.api_tokens
    session.record.note(token_id=token.id)
    session.clear_state()
    assert database.get(orm.APIToken, token.id) is token
