"""How a training is measured several times."""

from collections.abc import Callable
from typing import Any

import pytest

from measurement import sampling
from trials import trial


class Parts:
    """In the place of a result's file: nothing is kept."""

    def part(self, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        assert name.startswith("resnet50 run ")
        return measure()


class Idle(sampling.NodeSampler):
    """Nothing is looked at."""

    def __init__(self) -> None:
        pass

    def wait_for(self, moment: float) -> None:
        assert moment == 1.0

    def samples(self) -> Any:
        return []


def test_each_run_reads_images_that_the_one_before_has_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds: list[int] = []

    def measure(seed: int) -> dict[str, Any]:
        seeds.append(seed)
        return {"throughput": [(1.0, 2.0)]}

    for name in ("mean", "judged"):
        monkeypatch.setattr(trial, name, lambda *_: {})
    monkeypatch.setattr(trial, "words", lambda _: "")
    for _ in range(2):
        trial.repeated(Parts(), "resnet50", measure, 5, Idle(), None)  # type: ignore[arg-type]
    assert len(set(seeds[:5])) == 5
    assert all(0 <= seed < 2**31 for seed in seeds)
    # What goes on after an interruption is the same measurement.
    assert seeds[5:] == seeds[:5]
