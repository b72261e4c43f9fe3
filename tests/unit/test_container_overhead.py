"""The benchmark of images: its statistics, with rounds that are made up, and its processes."""

import os
import random
import sys
from itertools import count
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from benchmarks.cluster import container_overhead
from benchmarks.cluster.container_overhead import CONTROL, EXACT, IMAGE, processor, wall
from benchmarks.cluster.paired import FEWEST_ROUNDS, Burst, Round, alternated, loss
from benchmarks.cluster.waiting_process import BURSTS, WaitingProcess


@pytest.mark.parametrize(("number", "order"), [(0, "ABBA"), (1, "BAAB"), (2, "ABBA")])
def test_who_is_first_changes_from_round_to_round(number: int, order: str) -> None:
    asked: list[str] = []

    def burst(name: str) -> Burst:
        asked.append(name)
        return Burst(len(asked), 1)

    found = alternated(number, lambda: burst("A"), lambda: burst("B"))
    assert "".join(asked) == order
    bare, other = ([burst.wall_seconds for burst in of] for of in (found.bare, found.other))
    assert [*bare, *other] == ([1, 4, 2, 3] if order == "ABBA" else [2, 3, 1, 4])


@pytest.mark.parametrize("number", [0, 1])
def test_what_slows_both_more_and_more_is_no_difference(number: int) -> None:
    moment = count()

    def burst() -> Burst:
        seconds = 1.1 ** next(moment)
        return Burst(seconds, seconds)

    assert alternated(number, burst, burst).log_ratio(wall) == pytest.approx(0, abs=1e-12)


def test_the_clocks_are_told_apart() -> None:
    found = Round((Burst(1, 2), Burst(1, 2)), (Burst(2, 2), Burst(2, 2)))
    assert found.log_ratio(wall) == pytest.approx(-log(2))
    assert found.log_ratio(processor) == 0


def rounds_of(lost: float, spread: float, many: int, seed: int) -> list[float]:
    """Make up log-ratios: one in ten rounds is hit by something else, on one side or the other."""
    chance = random.Random(seed)  # noqa: S311
    return [
        log(1 - lost) + chance.gauss(0, spread) + (chance.random() < 0.1) * chance.uniform(-1, 1)
        for _ in range(many)
    ]


@pytest.mark.parametrize("lost", [0.019, 0.0, -0.019])
def test_a_loss_is_found_whatever_hits_a_round_in_ten(lost: float) -> None:
    found = loss(rounds_of(lost, 0.01, 100, seed=1))
    assert found.low < lost < found.high
    assert found.median == pytest.approx(lost, abs=0.004)
    assert 0 < found.half_width < EXACT


def test_the_interval_holds_the_loss_in_about_95_of_100_measurements() -> None:
    found = [loss(rounds_of(0.01, 0.02, 25, seed)) for seed in range(100)]
    assert 92 <= sum(one.low <= 0.01 <= one.high for one in found) <= 99


def test_sixteen_times_the_rounds_are_about_four_times_as_exact() -> None:
    few, many = (
        fmean(loss(rounds_of(0.01, 0.02, rounds, seed)).half_width for seed in range(8))
        for rounds in (25, 400)
    )
    assert few / many == pytest.approx(4, abs=1)


def test_too_few_rounds_have_no_interval() -> None:
    with pytest.raises(ValueError, match="5 rounds are too few; 6 give an interval"):
        loss([0.01] * (FEWEST_ROUNDS - 1))


def made_up(lost: float, spread: float, seed: int) -> list[Round]:
    """Make up rounds of a second each; both take two thirds of the processor's time."""
    return [
        Round((Burst(1, 2 / 3),) * 2, (Burst(exp(-ratio), 2 / 3),) * 2)
        for ratio in rounds_of(lost, spread, 100, seed)
    ]


def test_a_result_has_the_speeds_and_both_losses_by_both_clocks() -> None:
    found = {IMAGE: made_up(0.019, 0.01, seed=1), CONTROL: made_up(0, 0.01, seed=2)}
    told: Any = container_overhead.summary(25, found)
    assert told["bare_images_per_second"] == 400
    assert told["image_images_per_second"] == pytest.approx(400 * (1 - 0.019), rel=0.004)
    assert told["interval"][0] < told["share_lost"] < told["interval"][1]
    assert told["share_lost"] == pytest.approx(0.019, abs=0.004)
    assert told["processor_time"] == {"share_lost": 0, "interval": [0, 0], "half_width": 0}
    assert told["control"]["share_lost"] == pytest.approx(0, abs=0.004)
    assert told["is_exact"] is True


@pytest.mark.parametrize("wide", [IMAGE, CONTROL])
def test_a_wide_interval_is_not_exact_the_controls_neither(wide: str) -> None:
    found = {where: made_up(0, 0.1 if where == wide else 0.01, 1) for where in (IMAGE, CONTROL)}
    told: Any = container_overhead.summary(25, found)
    assert (told["half_width"] < EXACT) is (wide == CONTROL)
    assert told["is_exact"] is False


def test_a_process_stays_and_does_the_steps_that_it_is_asked_for(tmp_path: Path) -> None:
    program = f"{BURSTS}\nprint(os.getpid(), flush=True)\nfor _ in bursts(): print('step')\n"
    with WaitingProcess([sys.executable, "-uc", program], tmp_path, os.environ) as process:
        for steps in (3, 1):
            found = process.burst(steps)
            assert found.processor_seconds > 0
            assert found.wall_seconds > 0
    pid, *said = (tmp_path / "said.txt").read_text().split()
    assert said == ["step"] * (2 + 3 + 2 + 1)  # two before each, which are not counted
    assert not Path("/proc", pid).exists()


def test_waiting_counts_as_wall_time_alone(tmp_path: Path) -> None:
    program = f"{BURSTS}\nfor _ in bursts(): time.sleep(0.05)\n"
    with WaitingProcess([sys.executable, "-c", program], tmp_path, os.environ) as process:
        found = process.burst(4)
    assert found.wall_seconds >= 0.2 > found.processor_seconds


def test_a_process_that_fails_is_quoted(tmp_path: Path) -> None:
    program = f"{BURSTS}\nfor _ in bursts(): raise SystemExit('there is no network.onnx')\n"
    with (
        WaitingProcess([sys.executable, "-c", program], tmp_path, os.environ) as process,
        pytest.raises(RuntimeError, match=r"there is no network\.onnx"),
    ):
        process.burst(1)
