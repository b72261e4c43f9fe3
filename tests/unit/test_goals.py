"""The table of the goals, from the benchmarks' results."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.portal import goals
from tests.instance import ROOT

RESULTS = ROOT / "benchmarks/results"


def kept(name: str) -> dict[str, Any]:
    """Return the newest result of a benchmark that is kept."""
    return dict(json.loads(sorted(RESULTS.glob(f"{name}_2-cores_*.json"))[-1].read_text()))


def test_each_goal_is_held_against_a_figure_that_its_benchmark_has() -> None:
    table = goals.table([{name: kept(name) for name in goals.RUNS}])
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


@pytest.mark.parametrize(
    ("ends", "failed"),
    [
        (SystemExit(1), ["round 1, hub_idle", "round 2, hub_idle", "round 2, recovery"]),
        (KeyboardInterrupt(), ["interrupted in round 1, hub_idle"]),
    ],
    ids=["fails", "is interrupted"],
)
def test_what_ends_a_benchmark_costs_only_what_it_would_have_measured(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ends: BaseException,
    failed: list[str],
) -> None:
    asked: list[str] = []

    def result(_checkout: Path, benchmark: str, *_: object) -> dict[str, Any]:
        asked.append(benchmark)
        if benchmark == "hub_idle" or asked.count("recovery") == 2:
            raise ends
        return kept(benchmark)

    monkeypatch.setattr(goals, "result", result)
    monkeypatch.setattr(sys, "argv", ["goals", "--rounds", "2"])
    with pytest.raises(SystemExit) as ended:
        goals.main()
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert ended.value.code == 1
    assert told["failed"] == failed
    measured = {name for name, goal in goals.GOALS.items() if goal.benchmark in {*asked}}
    of_the_idle_hub = {name for name, goal in goals.GOALS.items() if goal.benchmark == "hub_idle"}
    assert told["figures"].keys() == measured - of_the_idle_hub
    # The parts of a figure are those of the same run.
    assert all(one == kept(name) for results in told["results"] for name, one in results.items())
    assert len(told["results"]) == 2
