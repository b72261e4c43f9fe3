"""A port that a session says, and a start that the hub's end interrupted."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from jupyterhub import orm

from tests.unit.spawner.sessions import failure, saved_state, started
from tests.unit.spawner.slurm_stand_in import (
    NUMBER,
    PORT,
    RUNS,
    SESSION,
    SILENCE,
    UNKNOWN,
    WAITS,
    StandIn,
)


def test_a_port_is_taken_once(spawner: Any, slurm: StandIn) -> None:
    assert spawner.take_port(PORT) is False
    slurm.words = [RUNS]
    started(spawner)
    assert spawner.take_port(PORT + 1) is False
    assert spawner.session.port == saved_state(spawner)["session_port"] == PORT


def test_an_interrupted_start_goes_on_with_its_job(interrupted: Any, slurm: StandIn) -> None:
    slurm.listed, slurm.words = {7: "b" * 32, NUMBER: SESSION}, [RUNS]
    assert interrupted.will_resume
    assert started(interrupted) == f"http://10.0.0.1:{PORT}"
    assert slurm.orders == [("sessions", "ada")]
    assert interrupted.orm_spawner.oauth_client.secret == "first"
    assert not interrupted.will_resume
    assert saved_state(interrupted)["job_id"] == f"{NUMBER}"


def test_an_interrupted_start_has_waited_since_it_was_asked_for(
    interrupted: Any, slurm: StandIn
) -> None:
    interrupted.record.state = replace(interrupted.session, asked_at=1_800_000_000.0)
    slurm.listed, slurm.words = {NUMBER: SESSION}, [RUNS]
    started(interrupted)
    event = asyncio.run(anext(interrupted.progress()))
    assert event["since"] == "2027-01-15T08:00:00+00:00"


def test_the_hubs_end_does_not_begin_the_wait_in_the_queue_anew(
    interrupted: Any, slurm: StandIn
) -> None:
    asked_at = time.time() - 1.5 * interrupted.queue_timeout
    interrupted.record.state = replace(interrupted.session, asked_at=asked_at)
    slurm.listed, slurm.words = {NUMBER: SESSION}, [WAITS]
    assert "waited in the queue" in failure(interrupted).jupyterhub_message


def test_a_slurm_that_is_silent_after_a_long_wait_does_not_end_it(
    interrupted: Any, slurm: StandIn
) -> None:
    asked_at = time.time() - 1.5 * interrupted.queue_timeout
    interrupted.record.state = replace(interrupted.session, asked_at=asked_at)
    slurm.listed, slurm.words = {NUMBER: SESSION}, [UNKNOWN, RUNS]
    assert started(interrupted) == f"http://10.0.0.1:{PORT}"


def test_when_a_session_was_asked_for_survives_the_hub(spawner: Any, slurm: StandIn) -> None:
    slurm.words = [RUNS]
    before = time.time()
    started(spawner)
    assert before <= saved_state(spawner)["asked_at"] <= time.time()


@pytest.mark.parametrize("says_it", ["before", "meanwhile"])
def test_a_port_that_comes_while_it_is_looked_for_is_heard(
    interrupted: Any, slurm: StandIn, monkeypatch: pytest.MonkeyPatch, says_it: str
) -> None:
    listed = slurm.sessions

    async def sessions(username: str) -> dict[int, str]:
        if says_it == "meanwhile":
            assert interrupted.take_port(PORT)
        return await listed(username)

    if says_it == "before":
        assert interrupted.take_port(PORT)
    monkeypatch.setattr(slurm, "sessions", sessions)
    slurm.listed, slurm.words = {NUMBER: SESSION}, [RUNS]
    assert started(interrupted, says_port=False) == f"http://10.0.0.1:{PORT}"


def test_one_whose_job_is_not_there_starts_anew(interrupted: Any, slurm: StandIn) -> None:
    slurm.listed, slurm.words = {7: "b" * 32}, [RUNS]
    started(interrupted)
    assert slurm.told()[-1] == "submit"
    assert interrupted.session.id != SESSION


def test_one_that_is_wanted_otherwise_is_cancelled_first(interrupted: Any, slurm: StandIn) -> None:
    interrupted.user_options = {"gpus": 1}
    slurm.words = [RUNS]
    old = orm.APIToken.find(interrupted.user.db, interrupted.user.new_api_token())
    interrupted.record.state, number = replace(interrupted.session, token_id=old.id), old.id
    started(interrupted)
    assert slurm.orders[0] == ("cancel", "ada", SESSION)
    assert slurm.told()[-1] == "submit"
    assert saved_state(interrupted)["session_options"] == {"gpus": 1}
    # The token of the one before is good for nothing.
    assert interrupted.user.db.get(orm.APIToken, number) is None


def test_it_is_taken_over_once_slurm_answers(interrupted: Any, slurm: StandIn) -> None:
    slurm.failures, slurm.listed, slurm.words = [SILENCE] * 2, {NUMBER: SESSION}, [RUNS]
    started(interrupted)
    assert slurm.told() == ["sessions"] * 3


def test_a_hub_that_notes_that_there_is_no_server_keeps_it(
    interrupted: Any, slurm: StandIn
) -> None:
    interrupted.clear_state()
    assert (interrupted.session.id, interrupted.will_resume) == (SESSION, True)
    slurm.listed, slurm.words = {NUMBER: SESSION}, [RUNS]
    started(interrupted)
    assert slurm.told() == ["sessions"]


def test_one_that_is_given_up_is_cancelled_and_forgotten(interrupted: Any, slurm: StandIn) -> None:
    old = orm.APIToken.find(interrupted.user.db, interrupted.user.new_api_token())
    interrupted.record.state, number = replace(interrupted.session, token_id=old.id), old.id
    interrupted.job_id = f"{NUMBER}"
    asyncio.run(interrupted.give_up())
    assert slurm.orders == [("cancel", "ada", SESSION)]
    assert not interrupted.is_interrupted
    assert not interrupted.will_resume
    assert not saved_state(interrupted).get("session_id")
    assert interrupted.user.db.get(orm.APIToken, number) is None
