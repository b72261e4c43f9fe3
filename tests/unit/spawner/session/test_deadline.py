from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jupyterhub_gpu_slurm.errors import OverLimit
from jupyterhub_gpu_slurm.options.allowance import Allowance
from jupyterhub_gpu_slurm.options.policy import Limits, PartitionLimit
from jupyterhub_gpu_slurm.session.deadline import ExtensionRules, extended_limit, possible_extension
from jupyterhub_gpu_slurm.slurm.records import Job

START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
LIMITS = Limits(
    (
        PartitionLimit("sxm2", 4, timedelta(hours=12)),
        PartitionLimit("long", 4, None),
    )
)
RULES = ExtensionRules(timedelta(hours=4), 3)


def job(hours: float, partition: str = "sxm2", state: str = "RUNNING") -> Job:
    end = START + timedelta(hours=hours)
    return Job(7, state, user="u", partition=partition, node="n", start=START, end=end)


@pytest.mark.parametrize(
    ("hours", "partition", "times", "minutes"),
    [
        (1, "sxm2", 0, 240),
        (8, "sxm2", 2, 240),
        (9, "sxm2", 0, 180),
        (11.99, "sxm2", 0, 0),
        (12, "sxm2", 0, 0),
        (13, "sxm2", 0, 0),
        (100, "long", 0, 240),
        (1, "sxm2", 3, 0),
        (1, "gone", 0, 0),
    ],
)
def test_what_can_be_added(hours: float, partition: str, times: int, minutes: int) -> None:
    possible = possible_extension(job(hours, partition), times, LIMITS, RULES)
    assert possible.longest == timedelta(minutes=minutes)
    assert bool(possible.reason) == (minutes == 0)


@pytest.mark.parametrize(
    ("hours", "partition", "times", "rules", "words"),
    [
        (12, "sxm2", 0, RULES, "at most 12 hours"),
        (1, "sxm2", 3, RULES, "extended 3 times"),
        (1, "sxm2", 1, ExtensionRules(timedelta(hours=4), 1), "extended once"),
        (1, "sxm2", 0, ExtensionRules(timedelta(hours=4), 0), "cannot be extended"),
        (1, "gone", 0, RULES, "gone is no longer open"),
    ],
)
def test_the_user_reads_why_nothing_can_be_added(
    hours: float, partition: str, times: int, rules: ExtensionRules, words: str
) -> None:
    possible = possible_extension(job(hours, partition), times, LIMITS, rules)
    assert words in possible.reason
    with pytest.raises(OverLimit, match=words):
        extended_limit(1, possible)


def test_the_limit_of_the_users_groups_counts_too() -> None:
    mine = Limits(LIMITS.partitions, Allowance(max_time=timedelta(hours=6)))
    assert possible_extension(job(5), 0, mine, RULES).longest == timedelta(hours=1)
    assert possible_extension(job(5, "long"), 0, mine, RULES).longest == timedelta(hours=1)
    assert possible_extension(job(1), 0, mine, RULES).longest == timedelta(hours=4)
    assert "at most 6 hours" in possible_extension(job(6), 0, mine, RULES).reason


@pytest.mark.parametrize("state", ["PENDING", "COMPLETING", "TIMEOUT", "GONE", ""])
def test_a_job_that_does_not_run_is_not_extended(state: str) -> None:
    possible = possible_extension(job(1, state=state), 0, LIMITS, RULES)
    assert (possible.deadline, possible.longest) == (None, timedelta(0))
    with pytest.raises(OverLimit):
        extended_limit(1, possible)


def test_a_job_without_a_limit_needs_no_extension() -> None:
    endless = Job(7, "RUNNING", partition="long", node="n", start=START, end=None)
    assert "not limited" in possible_extension(endless, 0, LIMITS, RULES).reason


def test_minutes_are_added_to_the_limit_as_it_is() -> None:
    possible = possible_extension(job(1.5), 0, LIMITS, RULES)
    assert extended_limit(30, possible) == 120
    assert extended_limit(240, possible) == 330
    with pytest.raises(OverLimit, match="240 min more at most"):
        extended_limit(241, possible)


def test_a_suspension_is_not_counted_as_time_that_slurm_gave() -> None:
    # Its limit is 2 hours; Slurm moved its end on by the hour for which it was suspended.
    suspended = replace(job(3), limit=timedelta(hours=2))
    possible = possible_extension(suspended, 0, LIMITS, RULES)
    assert (possible.deadline, possible.limit) == (suspended.end, timedelta(hours=2))
    assert extended_limit(30, possible) == 150
    at_the_limit = replace(job(13), limit=timedelta(hours=11))
    assert possible_extension(at_the_limit, 0, LIMITS, RULES).longest == timedelta(hours=1)


def test_the_hub_tells_moments_as_seconds() -> None:
    deadline = START.timestamp() + 11 * 3600
    assert possible_extension(job(11), 0, LIMITS, RULES).as_json() == {
        "deadline": deadline,
        "longest_minutes": 60,
        "until": deadline + 3600,
        "reason": "",
        "times_left": 3,
    }
    assert possible_extension(job(11), 2, LIMITS, RULES).times_left == 1
    assert possible_extension(job(12), 0, LIMITS, RULES).as_json()["until"] is None
