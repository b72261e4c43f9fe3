"""PyTorch Lightning: it learns, stops in order, continues exactly, and adds up over processes."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT
from tests.notebooks.running import (
    SPARING,
    as_by_srun,
    assert_drawn_live,
    printed_by,
    said_by,
    started_by_srun,
)
from tests.waiting import until

TEMPLATES = ROOT / "notebook_templates"
EPOCHS = 2
CHANCE = 0.1
DRAWN = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
curves = EventAccumulator(sys.argv[1]).Reload()
print(json.dumps([[point.step, point.value] for point in curves.Scalars("loss")]))
"""
# The second process's node does not see yet that there is a checkpoint.
UNSEEN = f"""
import os, pathlib, sys
sys.path.insert(0, {str(TEMPLATES / "lightning")!r})
import train_lightning as t
exists = pathlib.Path.exists
if os.environ["SLURM_PROCID"] == "1":
    pathlib.Path.exists = lambda path: path.name != "last.ckpt" and exists(path)
t.run(t.main, t.settings(), t.digits.DataError, t.ScheduleError, t.ResumeError)
"""
# The second process is told to stop as it begins, long before its first report.
SIGNALLED = f"""
import os, signal, sys
sys.path.insert(0, {str(TEMPLATES / "lightning")!r})
import train_lightning as t
import lightning_run
if os.environ["SLURM_PROCID"] == "1":
    StepTimer = lightning_run.StepTimer
    lightning_run.StepTimer = lambda: os.kill(os.getpid(), signal.SIGUSR1) or StepTimer()
t.run(t.main, t.settings(), t.digits.DataError, t.ScheduleError, t.ResumeError)
"""
OF_CLOCK = {"time", "elapsed_seconds", "images_per_second"}
STEPS = 4_096 // 32
"""Of an epoch: enough of them to be stopped in the middle of one."""
OFTEN = {"report_every": 5, "checkpoint_every": 20}
TWO_IMAGES = 2.5 / (OFTEN["report_every"] * 32)
"""Of a report's: sums are rounded differently, and an image at the margin falls on either side."""
SLOW: dict[str, object] = {"epochs": EPOCHS, "batch": 32, **OFTEN}


def argv(python: Path, results: Path, **options: object) -> list[str]:
    program = TEMPLATES / "lightning" / "train_lightning.py"
    words = [
        word
        for key, value in options.items()
        for word in (f"--{key.replace('_', '-')}", str(value))
    ]
    return [str(python), "-B", str(program), "--results", str(results), *words]


def train(python: Path, results: Path, **options: object) -> str:
    return said_by(argv(python, results, **options), SPARING)


def lines_of(results: Path) -> list[dict[str, Any]]:
    file = results / "progress.jsonl"
    lines = file.read_text().splitlines(True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def learned_in(results: Path) -> list[dict[str, Any]]:
    """Return the lines of progress, without what depends on the clock."""
    return [{key: line[key] for key in line if key not in OF_CLOCK} for line in lines_of(results)]


def drawn_in(python: Path, results: Path) -> list[list[float]]:
    """Return the points of the loss, step and value, that TensorBoard shows."""
    command = [str(python), "-c", DRAWN, str(results / "tensorboard")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return list(json.loads(done.stdout))


def broken_off(running: list[subprocess.Popen[bytes]], results: Path, number: int) -> None:
    """Wait for some lines more, then send the first of these processes a signal."""
    seen = len(lines_of(results))
    until(lambda: len(lines_of(results)) >= seen + 6, seconds=120, every=0.01, what="it trains")
    running[0].send_signal(number)


@pytest.mark.timeout(600)
def test_the_notebook_learns_and_a_broken_run_is_the_unbroken_one(
    python_of: Callable[[str], Path],
    preloaded: Callable[..., Path],
    tmp_path: Path,
    without_gpu: None,
) -> None:
    python, kernel = preloaded("pytorch", "lightning.pytorch"), python_of("pytorch")
    given = {"epochs": EPOCHS, "batch": SLOW["batch"], "more": OFTEN}
    printed = printed_by(TEMPLATES / "lightning/lightning.ipynb", kernel, tmp_path, given)
    unbroken = tmp_path / "logs/lightning/lightning-here"
    summary = json.loads((unbroken / "summary.json").read_text())
    assert summary["test_accuracy"] > 7 * CHANCE
    assert f"best test accuracy {summary['test_accuracy']:.4f}, processes: 1" in printed
    assert_drawn_live(tmp_path)

    # Stopped by Slurm's signal in the middle of an epoch, then killed, then let go on.
    broken, process = tmp_path / "broken", argv(python, tmp_path / "broken", **SLOW)
    with subprocess.Popen(process) as running:
        broken_off([running], broken, signal.SIGUSR1)
        assert running.wait(60) == 0
    assert 0 < lines_of(broken)[-1]["step"] < STEPS
    assert not (broken / "summary.json").exists()
    with subprocess.Popen(process) as running:
        broken_off([running], broken, signal.SIGKILL)
    said = train(python, broken, **SLOW)
    assert f" of {EPOCHS * STEPS}" in said.partition("resumed after step ")[2]
    assert learned_in(broken) == learned_in(unbroken)
    again = json.loads((broken / "summary.json").read_text())
    assert again["test_accuracy"] == summary["test_accuracy"]
    # No step is drawn twice where lines were lost.
    drawn = drawn_in(python, unbroken)
    assert len(drawn) > 2 * STEPS / 6
    assert drawn_in(python, broken) == drawn

    # One that is whole stays so.
    assert "best accuracy" in train(python, broken, **SLOW)
    assert learned_in(broken) == learned_in(unbroken)
    assert "use another folder" in train(python, broken, **SLOW | {"rate": 1})


def losses_in(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if not name.endswith("accuracy")}


def accuracies_in(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name.endswith("accuracy")}


@pytest.mark.timeout(600)
def test_two_processes_learn_what_one_does_with_twice_the_batch(
    preloaded: Callable[..., Path], tmp_path: Path, without_gpu: None
) -> None:
    python = preloaded("pytorch", "lightning.pytorch")
    # Dropout would draw other features in each process.
    same = {"epochs": EPOCHS, "dropout": 0, **OFTEN}
    assert "best accuracy" in train(python, tmp_path / "one", batch=32, **same)
    both, two = argv(python, tmp_path / "two", batch=16, **same), tmp_path / "two"
    # A signal to one of them stops both, after the same step.
    with started_by_srun(both, 2) as running:
        broken_off(running, two, signal.SIGUSR1)
        assert [one.wait(60) for one in running] == [0, 0]
    assert not (two / "summary.json").exists()
    interpreter, sparing, _, *words = both
    assert as_by_srun([interpreter, sparing, "-c", UNSEEN, *words], 2) == [0, 0]
    one, other = learned_in(tmp_path / "one"), learned_in(two)
    assert [line["step"] for line in one] == [line["step"] for line in other]
    for mine, theirs in zip(one, other, strict=True):
        assert losses_in(mine) == pytest.approx(losses_in(theirs), rel=1e-3)
        assert accuracies_in(mine) == pytest.approx(accuracies_in(theirs), abs=TWO_IMAGES)
    assert json.loads((two / "summary.json").read_text())["processes"] == 2
    assert one[-1]["test_accuracy"] > 7 * CHANCE


def test_the_best_network_is_read_by_a_copy_of_the_program(
    preloaded: Callable[..., Path], tmp_path: Path, without_gpu: None
) -> None:
    python, results = preloaded("pytorch", "lightning.pytorch"), tmp_path / "run"
    (tmp_path / "templates").symlink_to(TEMPLATES)
    mine = tmp_path / "mine.py"
    mine.write_bytes((TEMPLATES / "lightning" / "train_lightning.py").read_bytes())
    home = {**os.environ, **SPARING, "HOME": str(tmp_path)}
    command = [str(python), "-B", str(mine), "--results", str(results), "--epochs", "1"]
    subprocess.run(command, env=home, check=True, capture_output=True, timeout=120)
    measure = (
        "import sys, mine, torch; data = mine.DigitData('made', 64, 0, 1)\n"
        "images, labels = data.test.tensors\n"
        "network = mine.DigitNet.load_from_checkpoint(sys.argv[1]).eval()\n"
        "print((network(images).argmax(1) == labels).double().mean().item())"
    )
    done = subprocess.run(
        [str(python), "-B", "-c", measure, str(results / "checkpoints/best.ckpt")],
        env=home, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    summary = json.loads((results / "summary.json").read_text())
    assert float(done.stdout) == pytest.approx(summary["test_accuracy"], abs=1e-6)


def test_processes_stop_between_two_reports_when_one_is_signalled(
    preloaded: Callable[..., Path], tmp_path: Path, without_gpu: None
) -> None:
    python = preloaded("pytorch", "lightning.pytorch")
    whole = argv(python, tmp_path, batch=64, epochs=1, report_every=30)
    interpreter, sparing, _, *words = whole
    assert as_by_srun([interpreter, sparing, "-c", SIGNALLED, *words], 2) == [0, 0]
    assert [line["step"] for line in lines_of(tmp_path)] == [1]
    assert as_by_srun(whole, 2) == [0, 0]
    assert json.loads((tmp_path / "summary.json").read_text())["steps"] == 4_096 // 128


def test_a_training_that_is_run_again_knows_its_best_epoch(
    preloaded: Callable[..., Path], tmp_path: Path, without_gpu: None
) -> None:
    python = preloaded("pytorch", "lightning.pytorch")
    for _ in range(2):
        assert "best accuracy" in train(python, tmp_path, epochs=1, batch=512)
        (tested,) = [line for line in lines_of(tmp_path) if "test_accuracy" in line]
        summary = json.loads((tmp_path / "summary.json").read_text())
        assert summary["test_accuracy"] == tested["test_accuracy"]
