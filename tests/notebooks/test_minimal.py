"""The smallest training: the same file for one process, under torchrun, and as srun starts it."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instance import ROOT

TRAIN = ROOT / "notebook_templates" / "distributed" / "minimal" / "train.py"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


@pytest.mark.parametrize(("starter", "processes"), [((), 1), (TORCHRUN, 2)])
def test_the_smallest_training_learns(
    starter: tuple[str, ...], processes: int, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    done = subprocess.run(
        [str(python_of("pytorch")), "-B", *starter, str(TRAIN)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    losses = re.findall(rf"epoch \d of 5: loss ([\d.]+) on {processes} processes", done.stdout)
    assert len(losses) == 5
    assert float(losses[-1]) < 0.6 * float(losses[0])
    assert float(done.stdout.split("test accuracy ")[1]) > 0.85
    assert len((tmp_path / "progress.jsonl").read_text().splitlines()) == 5
