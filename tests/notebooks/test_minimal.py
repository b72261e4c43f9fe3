"""The smallest training: the same file for one process, under torchrun, and as srun starts it."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instance import ROOT
from tests.waiting import until

TRAIN = ROOT / "notebook_templates" / "distributed" / "minimal" / "train.py"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


def train(folder: Path, python: Path, *starter: str) -> str:
    """Run it to its end in a folder; return what it printed."""
    argv = [str(python), "-B", *starter, str(TRAIN)]
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=True, timeout=200
    ).stdout


def losses_of(folder: Path) -> dict[int, float]:
    """Return the loss of each epoch; of one that was computed twice, the last."""
    lines = map(json.loads, (folder / "progress.jsonl").read_text().splitlines())
    return {line["step"]: line["loss"] for line in lines}


@pytest.mark.parametrize(("starter", "processes"), [((), 1), (TORCHRUN, 2)])
def test_the_smallest_training_learns(
    starter: tuple[str, ...], processes: int, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    said = train(tmp_path, python_of("pytorch"), *starter)
    losses = re.findall(rf"epoch \d of 5: loss ([\d.]+) on {processes} processes", said)
    assert len(losses) == 5
    assert float(losses[-1]) < 0.6 * float(losses[0])
    assert float(said.split("test accuracy ")[1]) > 0.85
    assert len((tmp_path / "progress.jsonl").read_text().splitlines()) == 5


@pytest.mark.parametrize("starter", [(), TORCHRUN])
def test_a_training_that_was_ended_goes_on_as_if_it_had_not_been(
    starter: tuple[str, ...], python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    python = python_of("pytorch")
    said = train(whole, python, *starter)
    argv = [str(python), "-B", *starter, str(TRAIN)]
    with subprocess.Popen(
        argv, cwd=broken, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        until((broken / "checkpoint.pt").exists, seconds=100, what="an epoch", every=0.01)
        # torchrun ends its processes first.
        running.terminate()
    assert 1 <= len(losses_of(broken)) < 5
    again = train(broken, python, *starter)
    assert "epoch 1 of" not in again
    assert losses_of(broken) == losses_of(whole)
    assert again.split("test accuracy ")[1] == said.split("test accuracy ")[1]
    assert not (broken / "checkpoint.pt.new").exists()
