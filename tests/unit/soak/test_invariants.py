"""What must hold at any moment."""

import pytest

from benchmarks.portal.soak import invariants
from benchmarks.portal.soak.slurm import Allocation, ListedJob
from benchmarks.portal.soak.stays import Stay, Stays, StayState


def stay(state: StayState, job_id: str = "7", user: str = "anna") -> dict[str, Stay]:
    return {user: Stay(user, state, 0, job_id)}


def job(job_id: str = "7", state: str = "RUNNING", user: str = "anna") -> ListedJob:
    return ListedJob(job_id, user, state, f"portal-{user}")


@pytest.mark.parametrize(
    ("state", "jobs", "expected"),
    [
        (StayState.HERE, [job()], []),
        (StayState.HERE, [], ["anna"]),
        (StayState.HERE, [job(state="COMPLETING")], ["anna"]),
        (StayState.HERE, [job(job_id="8")], ["anna"]),
        (StayState.STARTING, [], []),
        (StayState.LEAVING, [], []),
        (StayState.ABSENT, [], []),
    ],
)
def test_a_session_is_lost_when_its_job_does_not_run(
    state: StayState, jobs: list[ListedJob], expected: list[str]
) -> None:
    assert list(invariants.lost(stay(state), jobs)) == expected


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["RUNNING"], []),
        (["RUNNING", "PENDING"], ["anna"]),
        (["COMPLETING", "PENDING"], []),
        (["CANCELLED", "RUNNING"], []),
    ],
)
def test_two_jobs_of_one_user_are_one_too_many(states: list[str], expected: list[str]) -> None:
    jobs = [job(str(number), state) for number, state in enumerate(states)]
    assert list(invariants.doubled(jobs)) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (StayState.ABSENT, ["7"]),
        (StayState.STARTING, []),
        (StayState.HERE, []),
        (StayState.LEAVING, []),
    ],
)
def test_a_job_whose_user_wants_none_is_an_orphan(state: StayState, expected: list[str]) -> None:
    assert list(invariants.orphans(stay(state), [job()])) == expected


def test_a_job_of_somebody_unknown_or_one_that_is_over_is_no_orphan() -> None:
    jobs = [job(user="other"), job(state="COMPLETED")]
    assert list(invariants.orphans(stay(StayState.ABSENT), jobs)) == []


def test_a_session_that_the_hub_does_not_know_is_forgotten() -> None:
    assert list(invariants.forgotten(stay(StayState.HERE), {"bob"})) == ["anna"]
    assert list(invariants.forgotten(stay(StayState.HERE), {"anna"})) == []
    assert list(invariants.forgotten(stay(StayState.STARTING), set())) == []


def test_a_gpu_that_two_jobs_have_is_given_twice() -> None:
    one = Allocation("1", frozenset({("node001", 0), ("node001", 1)}))
    two = Allocation("2", frozenset({("node001", 1), ("node002", 0)}))
    assert list(invariants.given_twice([one, two])) == [("node001", 1)]


def test_a_counter_that_began_again_counts_from_there() -> None:
    counts = [(0.0, 0), (30.0, 10), (60.0, 20), (90.0, 0), (120.0, 30), (150.0, 60)]
    assert invariants.most_in_a_minute(counts) == 60
    assert invariants.most_in_a_minute(counts[:3]) == 20


def test_the_p99_takes_a_hundred_values() -> None:
    assert invariants.p99([1.0] * 99) is None
    assert invariants.p99([1.0] * 100) == 1


def test_what_has_changed_meanwhile_is_not_judged() -> None:
    stays = Stays()
    for user in ("anna", "bob"):
        stays.change(user, StayState.HERE, "7")
    before = stays.now()
    stays.change("anna", StayState.LEAVING)
    assert set(stays.unchanged(before)) == {"bob"}
