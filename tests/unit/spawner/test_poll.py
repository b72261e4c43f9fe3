"""Whether a session lives, and what it leaves when it does not."""

from typing import Any

import pytest

from jupyterhub_gpu_slurm.session import endings
from jupyterhub_gpu_slurm.session import job as session_job
from jupyterhub_gpu_slurm.session.observation import Ending, SessionNews
from jupyterhub_gpu_slurm.session.state import SessionState
from jupyterhub_gpu_slurm.slurm.records import Job
from tests.unit.spawner.slurm_stand_in import (
    COMPLETES,
    FAILED,
    IS_CANCELLED,
    NUMBER,
    RUNS,
    SESSION,
    SILENCE,
    UNKNOWN,
    WAITS,
    StandIn,
    job,
    run,
)


def polled(spawner: Any) -> int | None:
    return run(spawner.poll())  # type: ignore[no-any-return]


def test_what_was_never_started_is_not_there(spawner: Any) -> None:
    assert polled(spawner) == 0


def test_a_job_of_the_spawner_before_this_one_is_no_session(spawner: Any, slurm: StandIn) -> None:
    # What batchspawner keeps of a server.
    spawner.load_state({"job_id": f"{NUMBER}", "job_status": "RUNNING node1"})
    assert polled(spawner) == 0


def test_an_interrupted_start_is_no_server_yet(interrupted: Any) -> None:
    assert polled(interrupted) == 1


def test_a_submission_without_a_number_is_perhaps_a_job(spawner: Any, slurm: StandIn) -> None:
    spawner.record.state, spawner.job_id = SessionState(SESSION), ""
    assert polled(spawner) is None
    assert slurm.ages == []


@pytest.mark.parametrize("said", [RUNS, UNKNOWN, job("SUSPENDED"), job("a word of tomorrow")])
def test_a_session_lives_as_long_as_slurm_does_not_say_otherwise(
    session: Any, slurm: StandIn, said: Job
) -> None:
    slurm.words = [said]
    assert polled(session) is None
    assert session._endings == {}


@pytest.mark.parametrize(
    ("said", "code"), [(FAILED, 1), (IS_CANCELLED, 0), (job("COMPLETED"), 0), (job("TIMEOUT"), 1)]
)
def test_a_session_that_is_over_leaves_how_it_ended(
    session: Any, slurm: StandIn, said: Job, code: int
) -> None:
    slurm.words = [said]
    assert polled(session) == code
    assert session._endings[session._log_name] == endings.last_session(endings.ended(said))
    assert slurm.forgotten == [NUMBER]
    slurm.words = [RUNS]
    assert polled(session) == code  # an end is an end


def test_slurms_last_word_is_waited_for(
    session: Any, slurm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_job, "_LAST_WORD_SECONDS", 20)
    slurm.words = [COMPLETES, COMPLETES, job("OUT_OF_MEMORY")]
    assert polled(session) == 1
    assert slurm.ages == [None, 0, 0]
    assert "OUT_OF_MEMORY" in session._endings[session._log_name]


def test_a_session_whose_epilog_takes_long_is_over_when_slurm_says_why(
    session: Any, slurm: StandIn
) -> None:
    heard: list[SessionNews] = []
    session.session_observer = heard.append
    slurm.words = [COMPLETES]
    assert [polled(session), polled(session)] == [None, None]
    assert session.job.is_leaving
    assert session._endings == {}
    slurm.words = [job("OUT_OF_MEMORY")]
    assert polled(session) == 1
    assert not session.job.is_leaving
    assert [news.ending for news in heard] == [Ending.OUT_OF_MEMORY]


def test_but_not_for_ever(session: Any, slurm: StandIn) -> None:
    session.end_timeout, slurm.words = 0.0, [COMPLETES]
    assert polled(session) == 1
    assert "Job 12 is over (COMPLETING)" in session._endings[session._log_name]


def test_a_session_back_in_the_queue_is_cancelled(session: Any, slurm: StandIn) -> None:
    slurm.words = [WAITS]
    assert polled(session) == 1
    assert slurm.orders == [("cancel", "ada", SESSION)]
    assert slurm.forgotten == [NUMBER]
    assert endings.requeued(f"{NUMBER}") in session._endings[session._log_name]
    assert polled(session) == 1


def test_and_again_if_slurm_did_not_answer(session: Any, slurm: StandIn) -> None:
    slurm.words, slurm.failures = [WAITS], [SILENCE]
    assert polled(session) is None
    assert session._endings == {}
    assert polled(session) == 1


def test_a_start_that_waits_is_not_back_in_the_queue(spawner: Any, slurm: StandIn) -> None:
    spawner.record.state, spawner.job_id = SessionState(SESSION), f"{NUMBER}"
    slurm.words = [WAITS]
    assert polled(spawner) is None
    assert slurm.orders == []


def test_the_observer_hears_how_it_ended(session: Any, slurm: StandIn) -> None:
    heard: list[SessionNews] = []
    session.session_observer = heard.append
    slurm.words = [RUNS, job("TIMEOUT")]
    assert polled(session) is None
    polled(session)
    assert [news.ending for news in heard] == [None, Ending.TIME_LIMIT]
    assert {news.session_id for news in heard} == {SESSION}
    assert heard[-1].node == "node001"


def test_a_cleared_session_is_as_if_it_had_never_been(session: Any, slurm: StandIn) -> None:
    slurm.words = [FAILED]
    polled(session)
    session.clear_state()
    assert polled(session) == 0
    assert (session.session.id, session.job_id, session.idle_tracker.report) == ("", "", None)
