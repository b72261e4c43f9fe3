"""The benchmark of forecasts: what it asks for, and how it counts."""

import random

from benchmarks.portal import forecasts
from benchmarks.portal.forecasts import Asked


def test_a_session_asks_for_its_share_of_a_node() -> None:
    lines = forecasts.script(2, 3, 20).splitlines()
    assert {"#SBATCH --gres=gpu:2", "#SBATCH --cpus-per-task=16", "#SBATCH --mem=96G"} <= {*lines}
    assert lines[-1] == "exec sleep 20"


def test_a_half_of_the_jobs_ends_before_its_time() -> None:
    chance = random.Random(1)  # noqa: S311
    drawn = [forecasts.background(chance) for _ in range(400)]
    early = 0
    for text, gpu_seconds in drawn:
        fields = dict(
            line.removeprefix("#SBATCH --").partition("=")[::2] for line in text.splitlines()
        )
        seconds = int(text.splitlines()[-1].split()[-1])
        gpus = int(fields["gres"].removeprefix("gpu:"))
        assert gpu_seconds == gpus * seconds
        assert 0 < seconds <= 60 * int(fields["time"])
        early += seconds < 60 * int(fields["time"])
    assert 160 < early < 240


def test_early_and_late_are_told_apart() -> None:
    errors = (-200.0, -60.0, 0.0, 60.0, 61.0)
    found = [
        (Asked(str(number), 0.0, "later", 300.0), 300.0 + error)
        for number, error in enumerate(errors)
    ]
    assert forecasts.figures(found) == {
        "count": 5,
        "share_within_60_s": 0.6,
        "share_later": 0.2,
        "error_seconds": {"median": 0.0, "least": -200.0, "most": 61.0},
        "waited_seconds_median": 300.0,
    }
