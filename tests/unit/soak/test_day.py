"""The plan of a compressed day."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from statistics import fmean

import pytest

from benchmarks.portal.soak import day
from benchmarks.portal.soak.day import DAY_HOURS, PlannedVisit, Scale

SCALE = Scale(
    seconds=5400, users=200, all_day=10, jobs=30, nodes=64, gpus_per_node=4, fault_seconds=180
)
FAULTS = ["hub killed", "proxy killed", "slurmd frozen"]
HOUR = SCALE.seconds / DAY_HOURS


def drawing(seed: int) -> Random:
    return Random(seed)  # noqa: S311


def visits_of(user: int, visits: Sequence[PlannedVisit]) -> list[PlannedVisit]:
    return [visit for visit in visits if visit.user == user]


def test_the_same_seed_draws_the_same_day_and_another_another() -> None:
    assert day.drawn(1, SCALE, FAULTS) == day.drawn(1, SCALE, FAULTS)
    assert day.drawn(1, SCALE, FAULTS) != day.drawn(2, SCALE, FAULTS)


def test_as_many_arrive_as_expected_in_the_mean() -> None:
    counts = [len(day.arrivals(drawing(seed), 100, HOUR)) for seed in range(200)]
    # The mean of 200 Poisson counts of 100: a standard deviation of 0.7.
    assert fmean(counts) == pytest.approx(100, abs=3)


def test_more_come_in_the_morning_than_at_lunch() -> None:
    hours = [at / HOUR for at in day.arrivals(drawing(1), 10_000, HOUR)]
    morning = sum(1 < hour < 2 for hour in hours)
    lunch = sum(4 < hour < 5 for hour in hours)
    assert morning > 4 * lunch > 0


@pytest.mark.parametrize(("hours", "expected"), [(-1, 0), (0, 0.2), (1.5, 4), (2, 2.75), (12, 0)])
def test_the_rate_is_a_line_between_the_points(hours: float, expected: float) -> None:
    assert day.rate(hours) == pytest.approx(expected)


def test_nobody_comes_while_they_are_there_and_all_leave_before_the_end() -> None:
    visits = day.drawn(1, SCALE, FAULTS).visits
    for user in range(SCALE.users):
        for one, next_one in pairwise(visits_of(user, visits)):
            assert one.end < next_one.begin
    assert max(visit.end for visit in visits) <= SCALE.seconds
    assert all(visit.begin < visit.end for visit in visits)


def test_some_are_there_nearly_all_day_and_nobody_else() -> None:
    visits = day.drawn(1, SCALE, FAULTS).visits
    all_day = [visit for visit in visits if visit.user < SCALE.all_day]
    assert [visit.user for visit in all_day] == list(range(SCALE.all_day))
    # They stand side by side for more than four fifths of the day.
    together = min(visit.end for visit in all_day) - max(visit.begin for visit in all_day)
    assert together > 0.8 * SCALE.seconds
    assert {visit.gpus for visit in all_day} <= set(day.ALL_DAY_GPUS)
    others = [visit for visit in visits if visit.user >= SCALE.all_day]
    # In the mean two for each of the 190 others: a standard deviation of 20.
    assert len(others) == pytest.approx(380, abs=60)


def test_all_may_be_there_all_day() -> None:
    scale = replace(SCALE, users=3, all_day=10)
    assert [visit.user for visit in day.drawn(1, scale, FAULTS).visits] == [0, 1, 2]


def test_sessions_have_the_gpus_that_the_distribution_says() -> None:
    visits = day.drawn(1, SCALE, FAULTS).visits
    without = sum(visit.gpus == 0 for visit in visits) / len(visits)
    assert without == pytest.approx(day.GPUS[0], abs=0.1)
    assert {visit.gpus for visit in visits} == set(day.GPUS)


def test_each_kind_of_fault_comes_once_before_any_comes_again() -> None:
    names = [fault.name for fault in day.drawn(1, SCALE, FAULTS).faults]
    assert len(names) > 2 * len(FAULTS)
    assert sorted(names[:3]) == sorted(names[3:6]) == sorted(FAULTS)


def test_a_day_may_be_without_faults() -> None:
    assert day.drawn(1, SCALE, []).faults == []
