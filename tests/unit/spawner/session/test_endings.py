from datetime import timedelta

import pytest

from jupyterhub_gpu_slurm.session import endings
from jupyterhub_gpu_slurm.session.observation import Ending
from jupyterhub_gpu_slurm.slurm.records import Job


@pytest.mark.parametrize("state", ["OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "TIMEOUT", "GONE"])
def test_every_ending_has_words(state: str) -> None:
    ending = endings.ended(Job(7, state))
    assert ending.startswith("Job 7 is over")
    assert not ending.endswith("it ended.")


def test_an_ending_names_slurms_state_where_slurm_has_one() -> None:
    assert endings.ended(Job(7, "TIMEOUT")) == "Job 7 is over (TIMEOUT): its time was up."
    assert endings.ended(Job(7, "GONE")).startswith("Job 7 is over: Slurm ")


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (endings.requeued("7"), ("Job 7", "put back", "cancelled")),
        (endings.last_session("It failed."), ("last session", "It failed.")),
        (endings.unused(timedelta(hours=2)), ("last session", "not been used for 2 h:")),
        (endings.not_started("It failed."), ("could not be started", "It failed.")),
        (endings.ended_while_starting("It failed."), ("while it was starting", "It failed.")),
        (endings.silent("7", "node001", 90.0), ("Job 7", "node001", "within 90 seconds")),
        (endings.waited_too_long("7", 5400), ("Job 7", "1.5 h", "fewer GPUs")),
    ],
)
def test_what_is_said_of_an_end_has_its_facts(words: str, facts: tuple[str, ...]) -> None:
    assert [fact for fact in facts if fact not in words] == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (12, "12 s"),
        (18.4, "18 s"),
        (60, "1 min"),
        (3599, "1 h"),
        (7200, "2 h"),
        (5400, "1 h 30 min"),
    ],
)
def test_a_time_is_written_for_people(seconds: float, words: str) -> None:
    assert endings.span(timedelta(seconds=seconds)) == words


def test_every_ending_but_an_unknown_one_has_a_reason() -> None:
    assert {one for one in Ending if not endings.because(one)} == {Ending.UNKNOWN}


def test_a_start_that_its_user_cancelled_is_not_called_a_failure() -> None:
    assert "cancelled or failed" in endings.because(Ending.NOT_STARTED)


def test_an_unused_session_names_the_time() -> None:
    assert endings.because(Ending.UNUSED, timedelta(hours=2)).endswith("for 2 h")
