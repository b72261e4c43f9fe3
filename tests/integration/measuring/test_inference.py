"""Inference measured from its notebook, in a job: real Slurm, on the CPU."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from tests.desk import Desk
from tests.instance import ROOT

pytestmark = pytest.mark.long

SCHEMA = json.loads((ROOT / "notebook_templates/benchmarks/schema.json").read_text())
SMALL: dict[str, Any] = {
    "gpus": 0,
    "model": "tiny",
    "size": 32,
    "batches": "1,4",
    "seconds": 0.05,
    "epochs": 1,
    "cores": 1,
    "memory_mb": 2500,
    "minutes": 5,
    # 1250 of them show the quantiser which values occur.
    "more": {"digits": 1300},
}


def test_each_precision_is_measured_with_each_batch(desk: Desk, kernel: Callable[..., str]) -> None:
    name = kernel()
    printed = desk.run_all(name, "benchmarks/inference.ipynb", **SMALL, wait=True)
    assert "The job completed" in printed
    folder = desk.home / "logs/measured-inference/inference-resnettiny-cpu"
    summary = json.loads((folder / "summary.json").read_text())
    jsonschema.validate(summary, SCHEMA)
    assert [len(summary["samples"][host["name"]]) > 0 for host in summary["hosts"]] == [True]
    accuracy, *speeds = summary["parts"]
    assert set(accuracy["top1"]) == {"fp32", "bf16", "int8"}
    assert all(0 < share <= 1 for share in accuracy["top5"].values())
    assert [(one["batch"], one["precision"]) for one in speeds] == [
        (batch, name) for batch in (1, 4) for name in ("fp32", "bf16", "int8")
    ]
    for one in speeds:
        # A batch in its median time, up to the spread of a busy machine.
        assert one["images_per_second"] < 100 * one["batch"] / one["median_ms"] * 1e3
    best = max(one["images_per_second"] for one in speeds if one["precision"] == "int8")
    assert summary["figures"]["best_images_per_second"]["int8"] == best
    shown = desk.user.run_in(name, "print(report.markdown(found), report.figure(found)[:4])")
    assert (
        "| papers: ResNet-50, V100, TensorRT 4.0 |  | int8 |  | from 64 |  |  |  | about 3.7 |"
        in shown
    )
    assert r"b'\x89PNG'" in shown


def test_digits_that_are_not_there_are_told_in_words(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    name = kernel()
    nowhere = {**SMALL, "data_dir": "/no/such/folder", "runs_dir": "~/logs/none"}
    desk.run_all(name, "benchmarks/inference.ipynb", **nowhere)
    over = desk.user.run_in(name, "print('over:', (await watching).word)", seconds=120)
    assert "over: FAILED" in over
    (told,) = desk.home.glob("logs/none/*/error.txt")
    assert "/no/such/folder" in told.read_text()
    assert "Traceback" not in told.read_text()
