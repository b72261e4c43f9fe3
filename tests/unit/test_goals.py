"""The table of the goals, from the benchmarks' results."""

import json
from typing import Any

import pytest

from benchmarks.portal import goals
from tests.instance import ROOT

RESULTS = ROOT / "benchmarks/results"


def test_each_goal_is_held_against_a_figure_that_its_benchmark_has() -> None:
    kept = {name: sorted(RESULTS.glob(f"{name}_2-cores_*.json"))[-1] for name in goals.RUNS}
    table = goals.table([{name: json.loads(file.read_text()) for name, file in kept.items()}])
    assert table.keys() == goals.GOALS.keys()
    assert all(row["median"] > 0 for row in table.values())


@pytest.mark.parametrize(("last", "reached"), [(40, True), (90, False)])
def test_a_figure_is_the_median_of_the_rounds_with_their_spread(
    monkeypatch: pytest.MonkeyPatch, last: int, reached: bool
) -> None:
    goal = goals.Goal("storm", "ours.p95", 50)
    monkeypatch.setattr(goals, "GOALS", {"pages, ms": goal})
    rounds: list[dict[str, Any]] = [{"storm": {"ours": {"p95": one}}} for one in (45, 60, last)]
    (row,) = goals.table(rounds).values()
    middle = 45 if reached else 60
    assert row == {
        "goal": 50,
        "median": middle,
        "min": min(45, last),
        "max": max(60, last),
        "reached": reached,
    }
