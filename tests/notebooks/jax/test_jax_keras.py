"""A Keras model divided over many devices: it learns, and the same on any number of them.

The devices are what a CPU pretends to have, as JAX offers it: here are no GPUs.
"""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT
from tests.notebooks.running import as_by_srun, assert_drawn_live, printed_by, said_by
from tests.waiting import until

pytestmark = [pytest.mark.usefixtures("without_gpu"), pytest.mark.timeout(900)]
FOLDER = ROOT / "notebook_templates" / "jax"
SMALL = {"images": 40, "width": 64, "report_every": 10}
ACCURACY = 0.5
"""What is read right at least; it was 0.79 after as many steps, and chance reads a tenth."""
READ = """
import os, sys
os.environ["KERAS_BACKEND"] = "jax"
sys.path.append(sys.argv[1])
from pathlib import Path
import digits, keras
_, test = digits.load(Path(sys.argv[2]))
read = keras.saving.load_model(sys.argv[3]).predict(test.images, verbose=0).argmax(1)
print((read == test.labels).mean())
"""


@pytest.fixture
def digits(nas: Path) -> Path:
    return nas / "datasets" / "mnist"


def training(python: Path, digits: Path, results: Path, **options: object) -> list[str]:
    given = {**SMALL, "data": digits, "results": results, **options}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    return [str(python), "-B", str(FOLDER / "train_keras.py"), *words]


def progress_of(results: Path) -> dict[int, tuple[float, float, float]]:
    lines = [json.loads(line) for line in (results / "progress.jsonl").read_text().splitlines()]
    return {one["step"]: (one["loss"], one["accuracy"], one["test_accuracy"]) for one in lines}


def summary_of(results: Path) -> dict[str, Any]:
    return dict(json.loads((results / "summary.json").read_text()))


def test_the_notebook_learns_on_devices_that_share_the_wide_layer(
    python_of: Callable[[str], Path],
    preloaded: Callable[[str], Path],
    digits: Path,
    tmp_path: Path,
) -> None:
    small = {"data_dir": str(digits), "steps": 40, "more": {"report_every": 10}}
    printed = printed_by(FOLDER / "keras_distribution.ipynb", python_of("jax"), tmp_path, small)
    run = tmp_path / "logs/keras_distribution/digits-here"
    summary = summary_of(run)
    assert (summary["devices"], summary["distribution"]) == (4, "ModelParallel")
    assert summary["test_accuracy"] > ACCURACY
    assert summary["tf32"] is False
    assert "precision fp32\n" in printed
    assert f"test accuracy at the end {summary['test_accuracy']:.4f}" in printed
    assert "network/wide/kernel (1600, 512): (1600, 256) on each" in printed
    # All but the two convolutions and ten numbers lies in two parts.
    whole, convolutions = 4 * summary["weights"] / 1e6, 4 * 18_826 / 1e6
    assert summary["megabytes_on_a_device"] == pytest.approx((whole + convolutions) / 2)
    assert list((run / "tensorboard").glob("events.*"))
    assert_drawn_live(tmp_path)
    # What was trained in parts is one model to others.
    read = said_by(
        [preloaded("jax"), "-c", READ, FOLDER.parent / "data", digits, run / "model.keras"]
    )
    assert float(read) == pytest.approx(summary["test_accuracy"], abs=1e-3)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_it_is_the_same_on_any_devices_and_processes(
    preloaded: Callable[[str], Path], digits: Path, tmp_path: Path
) -> None:
    python = preloaded("jax")
    whole, parts, other = tmp_path / "whole", tmp_path / "parts", tmp_path / "other"
    said_by(training(python, digits, whole, steps=20))
    # Four devices, two of which share each image; then two processes that share all.
    said_by(training(python, digits, parts, steps=10, cpu_devices=4, model_devices=2))
    assert sorted(progress_of(parts)) == [10]
    on_two = training(python, digits, parts, steps=20, model_devices=2)
    assert as_by_srun(on_two, 2) == [0, 0]
    assert summary_of(parts)["processes"] == 2
    # Two processes with images of their own.
    assert as_by_srun(training(python, digits, other, steps=20), 2) == [0, 0]
    assert summary_of(other)["distribution"] == "DataParallel"
    wanted = progress_of(whole)
    assert sorted(wanted) == [10, 20]
    for found in (progress_of(parts), progress_of(other)):
        assert sorted(found) == [10, 20]
        for step, values in wanted.items():
            assert found[step] == pytest.approx(values, abs=1e-4)
    # Another rate is another training.
    said = said_by(training(python, digits, parts, steps=30, rate=0.1))
    assert "holds a training with rate = 0.001, not 0.1" in said


def test_a_run_that_is_told_to_stop_goes_on_as_if_it_had_not_been(
    preloaded: Callable[[str], Path], digits: Path, tmp_path: Path
) -> None:
    python, whole, broken = preloaded("jax"), tmp_path / "whole", tmp_path / "broken"
    endless = training(python, digits, broken, steps=100_000, cpu_devices=2)
    with subprocess.Popen(endless, stdout=subprocess.PIPE, text=True) as running:
        lines = broken / "progress.jsonl"
        until(lambda: lines.exists() and lines.read_text(), seconds=200, what="it has begun")
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=200)
    assert running.returncode == 0
    reached = max(progress_of(broken))
    assert f"stopped after step {reached} of 100000: run again to resume" in said
    end = reached + 10
    resumed = said_by(training(python, digits, broken, steps=end, cpu_devices=2))
    assert f"resumed after step {reached} of {end}" in resumed
    said_by(training(python, digits, whole, steps=end, cpu_devices=2))
    # To the last digit: weights, moments, what dropout leaves out, and which images come next.
    assert progress_of(broken) == progress_of(whole)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cpu_devices": 4, "model_devices": 3}, "model_devices is 3; it must divide the 4"),
        ({"cpu_devices": 4, "images": 42}, "images (42) must be a multiple of the 4 groups"),
        (
            {"cpu_devices": 2, "model_devices": 2, "width": 65},
            "width (65) must be a multiple of model_devices (2)",
        ),
        ({"data": "/nowhere"}, "/nowhere/train-images-idx3-ubyte.gz is missing"),
        ({"images": 100_000}, "a step of 100000 images is more than all there are"),
    ],
)
def test_what_cannot_be_is_said_in_words(
    preloaded: Callable[[str], Path],
    digits: Path,
    tmp_path: Path,
    options: dict[str, Any],
    words: str,
) -> None:
    said = said_by(training(preloaded("jax"), digits, tmp_path / "run", **options))
    assert words in said
    assert "Traceback" not in said
