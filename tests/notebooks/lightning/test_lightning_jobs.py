"""Lightning over two nodes, without GPUs: real Slurm."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.desk import Desk
from tests.instance import Instance
from tests.waiting import until

NOTEBOOK = "lightning/lightning.ipynb"
SMALL: dict[str, Any] = {
    "nodes": 2,
    "gpus_per_node": 0,
    "cores_per_process": 1,
    "memory_mb_per_process": 2500,
    "minutes": 5,
}


def steps_of(run: Path) -> list[int]:
    file = run / "progress.jsonl"
    lines = file.read_text().splitlines(True) if file.exists() else []
    return [json.loads(line)["step"] for line in lines if line.endswith("\n")]


def test_a_lightning_job_learns_on_two_nodes(desk: Desk, kernel: Callable[..., str]) -> None:
    patient = replace(desk, patience=280.0)
    where = {"runs_dir": "~/logs/runs/lightning", "wait": True}
    # As on GPUs.
    mixed = {"batch": 32, "epochs": 3, "precision": "bf16-mixed"}
    printed = patient.run_all(kernel(), NOTEBOOK, **SMALL, **where, **mixed)
    assert "The job completed" in printed
    assert re.search(r"best test accuracy 0\.\d+, processes: 2", printed)
    run = desk.home / "logs/runs/lightning/lightning-2x1"
    log = (run / "processes.log").read_text()
    assert "64 images a step = 32 a process x 2 processes" in log
    summary = json.loads((run / "summary.json").read_text())
    assert summary["test_accuracy"] > 0.7
    assert (run / "checkpoints/best.ckpt").exists()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_lightning_job_whose_time_is_up_goes_on_by_itself(
    portal: Instance, desk: Desk, kernel: Callable[..., str]
) -> None:
    name, patient = kernel(), replace(desk, patience=280.0)
    # Slurm tells it two or three minutes before the end: not at once, when Python still imports.
    endless = {"minutes": 4, "continues": 1, "epochs": 1000, "runs_dir": "~/logs/runs/continued"}
    begun = patient.run_all(name, NOTEBOOK, **SMALL | endless)
    run = desk.home / "logs/runs/continued/lightning-2x1"
    first = until(lambda: steps_of(run), seconds=120, what="it has begun")
    # Slurm lets a job that is put back wait for two minutes.
    said = patient.user.run_in(name, "print((await watching).word)", seconds=600)
    assert "COMPLETED" in said
    step = re.search(r"resumed after step (\d+) of ", (run / "processes.log").read_text())
    assert step
    assert int(step[1]) >= max(first)
    assert max(steps_of(run)) > int(step[1])
    number = re.search(r"job (\d+)", begun)
    assert number
    assert portal.job(number[1])["Restarts"] == "1"
