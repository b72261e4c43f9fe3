"""The template that says where a training's time goes."""

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.instance import ROOT
from tests.notebooks.running import printed_by

PROFILING = ROOT / "notebook_templates" / "profiling"
# One whose batches take a known time, and its step next to none.
SLOW_DATA = """
import time
import torch

def training():
    def batches():
        while True:
            time.sleep(0.03)
            yield torch.ones(8)

    def step(batch):
        (batch * 2).sum()

    return batches(), step

def broken():
    raise ValueError("no such data")

def empty():
    return [], print

def once():
    return iter([1, 2, 3]), abs
"""
# A GPU is there, and the training does not use it.
UNUSED = """
import sys
from pathlib import Path
import torch
import where_time_goes

torch.cuda.is_available, torch.cuda.synchronize = lambda: True, lambda: None
# Without a GPU, PyTorch's profiler would warn of each operation that it cannot record there.
profile = where_time_goes.profile
where_time_goes.profile = lambda activities: profile(activities=activities[:1])
ones = torch.ones(8)
batches, step = iter([ones] * 3), lambda batch: (batch * 2).sum()
found = where_time_goes.traced(batches, step, 3, Path(sys.argv[1]))
print(*(one["name"] for one in found))
"""


def test_the_notebook_shows_shares_operations_and_earlier_measurements(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    python = python_of("pytorch")
    earlier = tmp_path / "runs" / "2026-01-01-000000"
    (tmp_path / "slow.py").write_text(SLOW_DATA)
    measured(python, earlier, f"{tmp_path / 'slow.py'}:training")
    given = {"steps": 4, "warm_up": 1, "runs_dir": str(tmp_path / "runs")}
    printed = printed_by(PROFILING / "profile.ipynb", python, tmp_path, given)
    assert "4 steps took" in printed
    (run,) = (path for path in (tmp_path / "runs").iterdir() if path != earlier)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["advice"] in printed
    assert summary["gpu"] is None
    assert any("convolution_backward" in each["name"] for each in summary["operations"])
    with gzip.open(run / "trace.json.gz") as file:
        assert json.load(file)["traceEvents"]
    done = (tmp_path / "done.ipynb").read_text()
    assert "slow.py:training" in done
    assert "example.py:training" in done


def measured(python: Path, results: Path, training: str) -> str:
    argv = [str(python), "-B", str(PROFILING / "where_time_goes.py"), f"--results={results}"]
    argv += [f"--training={training}", "--steps=10", "--warm-up=1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout + done.stderr


def test_waiting_for_data_is_told_from_computing(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(SLOW_DATA)
    said = measured(python_of("pytorch"), tmp_path / "run", f"{tmp_path / 'slow.py'}:training")
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["waiting"] > 0.8
    assert summary["seconds_per_step"] >= 0.03
    assert said.strip().endswith(summary["advice"])
    assert "waits for data: load it in other processes" in summary["advice"]


def test_what_cannot_be_measured_is_said(python_of: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW_DATA)
    python = python_of("pytorch")
    gone = measured(python, tmp_path / "a", f"{tmp_path / 'slow.py'}:gone")
    assert "has no attribute 'gone'" in gone
    assert "Traceback" not in gone
    broken = measured(python, tmp_path / "b", f"{tmp_path / 'slow.py'}:broken")
    assert "ValueError: no such data" in broken
    assert "no such data" in (tmp_path / "b/error.txt").read_text()
    for name in ("empty", "once"):
        said = measured(python, tmp_path / name, f"{tmp_path / 'slow.py'}:{name}")
        assert "the training's batches have come to their end" in said
        assert "Traceback" not in said


def test_of_a_training_that_leaves_the_gpu_alone_the_processors_work_is_shown(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    argv = [str(python_of("pytorch")), "-B", "-c", UNUSED, str(tmp_path / "trace.json")]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=120, cwd=PROFILING
    )
    assert "aten::mul" in done.stdout, done.stderr
