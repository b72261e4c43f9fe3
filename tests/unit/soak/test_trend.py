"""How fast something grows, and how sure that is."""

import math
from collections.abc import Iterator
from random import Random

import pytest

from benchmarks.portal.harness.trend import BLOCK_SECONDS, FEWEST, student_95, trend

STEP = 5
HOUR = 3600


def line(per_hour: float, *, start: float = 0, first: int = 0) -> list[tuple[float, float]]:
    """Return an hour of samples."""
    ats = range(first, first + HOUR, STEP)
    return [(float(at), start + per_hour * (at - first) / HOUR) for at in ats]


def noise(seed: int, memory_seconds: float) -> Iterator[float]:
    """Give deviations, each of which is forgotten in about so many seconds; 0: at once."""
    chance = Random(seed)  # noqa: S311
    kept = math.exp(-STEP / memory_seconds) if memory_seconds else 0.0
    value = chance.gauss(0, 2)
    while True:
        yield value
        value = kept * value + math.sqrt(1 - kept**2) * chance.gauss(0, 2)


def test_a_straight_line_has_its_slope_and_no_doubt() -> None:
    found = trend({1: line(7.2, start=100)})
    assert found is not None
    assert found.per_hour == pytest.approx(7.2)
    assert found.low == pytest.approx(found.high)


def test_a_process_that_was_started_anew_does_not_shrink() -> None:
    found = trend({1: line(3, start=200), 2: line(3, start=100, first=HOUR)})
    assert found is not None
    assert found.per_hour == pytest.approx(3)


@pytest.mark.parametrize("memory_seconds", [0, 30, 60])
def test_the_interval_holds_the_truth_nineteen_times_of_twenty(memory_seconds: float) -> None:
    hits = 0
    for seed in range(200):
        deviations = noise(seed, memory_seconds)
        found = trend({1: [(at, value + next(deviations)) for at, value in line(5)]})
        assert found is not None
        hits += found.low <= 5 <= found.high
    assert 180 <= hits <= 198


def test_many_alike_samples_are_no_surer_than_their_block() -> None:
    """A value that changes once in a block, asked often, is as sure as asked once."""
    values = [0.0, 3.0, 1.0, 2.0, 5.0, 2.0]

    def interval(step: int) -> float:
        ats = range(0, int(FEWEST * BLOCK_SECONDS), step)
        found = trend({1: [(float(at), values[int(at // BLOCK_SECONDS)]) for at in ats]})
        assert found is not None
        return found.high - found.low

    assert interval(5) == pytest.approx(interval(20), rel=0.05)


@pytest.mark.parametrize(("free", "expected"), [(4, 2.776), (10, 2.228), (30, 2.042)])
def test_few_blocks_have_the_quantile_of_student(free: int, expected: float) -> None:
    assert student_95(free) == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize(
    "series",
    [
        {},
        {1: []},
        {1: [(1.0, 2.0)]},
        {1: [(5.0, float(n)) for n in range(20)]},
        {1: line(5)[: 25 * 60 // STEP]},
    ],
)
def test_too_little_says_nothing(series: dict[object, list[tuple[float, float]]]) -> None:
    assert trend(series) is None
