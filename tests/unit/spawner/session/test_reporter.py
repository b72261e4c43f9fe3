"""What a spawner tells of its session: to an observer, and to the metrics."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY

from jupyterhub_gpu_slurm.session.observation import Ending, SessionNews, ending_of
from jupyterhub_gpu_slurm.session.state import SessionState
from jupyterhub_gpu_slurm.slurm.records import _STATES, Job, JobState
from tests.unit.spawner.stand_in import spawner_of

STARTED = datetime.now(UTC) - timedelta(minutes=10)
UP_TO = STARTED + timedelta(hours=8)
RUNNING = Job(12, "RUNNING", None, "ada", "sxm2", "node001", STARTED, UP_TO)
TIMEOUT = Job(12, "TIMEOUT", None, "ada", "sxm2", "node001", STARTED, UP_TO)
GONE = Job(12, "GONE")


@pytest.fixture
def heard() -> list[SessionNews]:
    return []


@pytest.fixture
def session(heard: list[SessionNews]) -> Iterator[Any]:
    """The spawner of a session that can be used."""
    with spawner_of("ada") as spawner:
        spawner.session_observer = heard.append
        spawner.job_id = "12"
        spawner.record.state = SessionState(
            "a" * 32, {"hours": 2.0}, gpus=2, groups=("bio", "ml"), is_ready=True
        )
        yield spawner


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def ends(kind: str) -> float:
    return count("gpu_spawner_session_ends_total", kind=kind)


def test_a_session_that_is_seen_to_run_is_told_of(session: Any, heard: list[SessionNews]) -> None:
    session.reporter.note_job(RUNNING)
    (news,) = heard
    assert (news.user, news.groups, news.gpus) == ("ada", ("bio", "ml"), 2)
    assert news.options == {"hours": 2.0}
    assert (news.job_id, news.node, news.partition) == (12, "node001", "sxm2")
    assert (news.started, news.ending, news.ended) == (STARTED, None, None)


@pytest.mark.parametrize("state", ["PENDING", "", "COMPLETING", "COMPLETED"])
def test_one_that_does_not_run_is_not(session: Any, heard: list[SessionNews], state: str) -> None:
    session.reporter.note_job(Job(12, state))
    assert heard == []


def test_an_end_is_told_once(session: Any, heard: list[SessionNews]) -> None:
    before = ends("time_limit")
    session.reporter.note_job(RUNNING)
    session.reporter.note_end(Ending.TIME_LIMIT, TIMEOUT)
    session.reporter.note_stop(TIMEOUT)
    assert [news.ending for news in heard] == [None, Ending.TIME_LIMIT]
    assert heard[-1].ended == UP_TO
    assert ends("time_limit") == before + 1


@pytest.mark.parametrize(("idle_minutes", "kind"), [(61, "unused"), (59, "stopped")])
def test_a_stop_is_the_users_unless_the_session_was_unused(
    session: Any, idle_minutes: int, kind: str
) -> None:
    before = ends(kind)
    session.idle_tracker.hear(idle_minutes * 60, timedelta(hours=1), datetime.now(UTC))
    session.note_unused()
    session.reporter.note_stop(Job(12, "CANCELLED", start=STARTED, end=UP_TO))
    assert ends(kind) == before + 1


@pytest.mark.parametrize(("name", "kind"), [("root", "stopped_by_other"), ("ada", "stopped")])
def test_a_stop_by_somebody_else_is_not_the_users(session: Any, name: str, kind: str) -> None:
    before = ends(kind)
    session.note_stopper(name)
    session.reporter.note_stop(Job(12, "CANCELLED", start=STARTED, end=UP_TO))
    assert ends(kind) == before + 1


def test_a_session_that_is_used_again_is_stopped_by_its_user(session: Any) -> None:
    before = ends("stopped")
    for minutes, is_unused in ((61, True), (0, False)):
        session.idle_tracker.hear(minutes * 60, timedelta(hours=1), datetime.now(UTC))
        assert session.note_unused() is is_unused
    session.reporter.note_stop(Job(12, "CANCELLED", start=STARTED, end=UP_TO))
    assert ends("stopped") == before + 1


def test_an_end_that_slurm_does_not_know_tells_what_was_known(
    session: Any, heard: list[SessionNews]
) -> None:
    session.reporter.note_job(RUNNING)
    session.reporter.note_end(Ending.UNKNOWN, GONE)
    assert (heard[-1].node, heard[-1].started, heard[-1].ended) == ("node001", STARTED, None)


def test_the_end_of_a_session_that_an_earlier_hub_started_is_told(
    session: Any, heard: list[SessionNews]
) -> None:
    session.reporter.note_end(Ending.TIME_LIMIT, TIMEOUT)
    assert [(news.started, news.ended) for news in heard] == [(STARTED, UP_TO)]


def test_the_time_limit_of_a_job_that_still_runs_is_not_its_end(
    session: Any, heard: list[SessionNews]
) -> None:
    session.reporter.note_stop(RUNNING)
    assert heard[-1].ended is None


def test_a_start_that_was_given_up_in_the_queue_held_nothing(
    session: Any, heard: list[SessionNews]
) -> None:
    before = ends("not_started")
    session.record.state = replace(session.session, is_ready=False)
    session.reporter.note_stop(Job(12, "CANCELLED"))
    assert heard == []
    assert ends("not_started") == before + 1


def test_a_start_that_failed_on_its_node_held_gpus(session: Any, heard: list[SessionNews]) -> None:
    session.record.state = replace(session.session, is_ready=False)
    session.reporter.note_job(RUNNING)
    session.reporter.note_end(Ending.FAILED, Job(12, "FAILED", end=UP_TO))
    assert heard[-1].ending is Ending.NOT_STARTED


def test_an_observer_that_fails_harms_nobody(session: Any, caplog: Any) -> None:
    def fails(news: SessionNews) -> None:
        raise RuntimeError("a fault of the site's")

    session.session_observer = fails
    session.reporter.note_job(RUNNING)
    assert "The observer of sessions failed" in caplog.text


def test_the_wait_is_from_the_submission_to_the_start_on_a_node(session: Any) -> None:
    before = count("gpu_spawner_session_wait_seconds_sum")
    session.reporter.begin()
    session.reporter._waits_since = STARTED - timedelta(seconds=90)
    for _ in range(3):
        session.reporter.note_job(RUNNING)
    assert count("gpu_spawner_session_wait_seconds_sum") - before == pytest.approx(90)


def test_a_wait_that_another_hub_saw_begin_is_not_counted(session: Any) -> None:
    before = count("gpu_spawner_session_wait_seconds_count")
    session.reporter.begin()
    session.reporter.note_job(RUNNING)
    session.reporter.note_ready()
    assert count("gpu_spawner_session_wait_seconds_count") == before


@pytest.mark.parametrize(
    "state", [state for state, kind in _STATES.items() if kind is JobState.ENDED]
)
def test_every_end_in_slurm_is_of_a_known_kind(state: str) -> None:
    assert ending_of(Job(12, state)) is not Ending.UNKNOWN
