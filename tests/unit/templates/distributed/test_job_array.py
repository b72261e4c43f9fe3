"""A job array's end: why a task failed, and that nobody else does its work meanwhile."""

import os
from pathlib import Path

import jobs
import pytest
from plans import PlanError
from runs.job_array import JobArray


@pytest.fixture
def array(tmp_path: Path) -> JobArray:
    (tmp_path / "job.txt").write_text("7\n")
    return JobArray(tmp_path)


def test_the_first_task_that_failed_says_why_while_others_run(
    array: JobArray, tmp_path: Path
) -> None:
    assert array.failure({"RUNNING": 1}) == ""
    (tmp_path / "error.txt").write_text("Process 0 on n1: no such data\n")
    assert array.failure({"RUNNING": 1}) == "Process 0 on n1: no such data\n"


def test_a_program_that_was_never_begun_leaves_slurms_log(array: JobArray, tmp_path: Path) -> None:
    for number, name in enumerate(("slurm-7_2.out", "slurm-7_1.out", "slurm-6_9.out")):
        (tmp_path / name).write_text(f"{name}: module: command not found\n")
        os.utime(tmp_path / name, (number, number))
    assert array.failure({"RUNNING": 1}) == ""
    assert array.failure({}) == "slurm-7_1.out: module: command not found"


def test_nobody_works_beside_an_array_that_is_not_over(
    array: JobArray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "7 RUNNING\n7 PENDING\n7 PENDING\n6 RUNNING"
    monkeypatch.setattr(jobs, "_slurm", lambda *_, **__: said)
    with pytest.raises(PlanError, match=r"job array 7: 2 pending, 1 running, and works in .*7$"):
        array.refuse_beside()
    said = "6 RUNNING"
    array.refuse_beside()
    (tmp_path / "job.txt").unlink()
    said = "7 RUNNING"
    array.refuse_beside()
