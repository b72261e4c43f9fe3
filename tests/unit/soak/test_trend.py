"""How fast something grows, and how sure that is."""

from random import Random

import pytest

from benchmarks.portal.soak.trend import trend


def line(per_hour: float, *, start: float = 0, first: int = 0) -> list[tuple[float, float]]:
    return [
        (10.0 * n, start + per_hour * 10 * (n - first) / 3600) for n in range(first, first + 50)
    ]


def test_a_straight_line_has_its_slope_and_no_doubt() -> None:
    found = trend({1: line(7.2, start=100)})
    assert found is not None
    assert found.per_hour == pytest.approx(7.2)
    assert found.low == pytest.approx(found.high)


def test_a_process_that_was_started_anew_does_not_shrink() -> None:
    found = trend({1: line(3, start=200), 2: line(3, start=100, first=50)})
    assert found is not None
    assert found.per_hour == pytest.approx(3)


def test_the_interval_holds_the_truth_nineteen_times_of_twenty() -> None:
    hits = 0
    for seed in range(200):
        chance = Random(seed)  # noqa: S311
        noisy = [(at, value + chance.gauss(0, 2)) for at, value in line(5)]
        found = trend({1: noisy})
        assert found is not None
        hits += found.low <= 5 <= found.high
    assert 180 <= hits <= 199


@pytest.mark.parametrize(
    "series", [{}, {1: []}, {1: [(1.0, 2.0)]}, {1: [(5.0, float(n)) for n in range(20)]}]
)
def test_too_little_says_nothing(series: dict[object, list[tuple[float, float]]]) -> None:
    assert trend(series) is None
