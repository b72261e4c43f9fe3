"""What a measurement keeps, where it was made, and how it goes on after an interruption."""

import errno
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from measurement import machine, result, steps
from measurement.result import NewerResultError, Result, ResultError, summaries
from measurement.steps import Nodes, StepError

SCHEMA = json.loads((Path(result.__file__).parents[1] / "schema.json").read_text())
HOST = machine.host()


def finished(folder: Path, benchmark: str = "training") -> dict[str, Any]:
    run = Result(folder, benchmark, {"batch": 64}, parts=1)
    run.part("run 1", lambda: {"images_per_second": 812.0})
    return run.finish([HOST], machine.versions(), {"mean": 812.0})


def test_a_summary_is_as_the_schema_says(tmp_path: Path) -> None:
    finished(tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(summary, SCHEMA)
    assert summary["schema"] == result.SCHEMA_VERSION
    (part,) = summary["parts"]
    begin, end = part.pop("times")
    assert 0 <= end - begin < 60
    assert part == {"name": "run 1", "images_per_second": 812.0}
    for name in SCHEMA["required"]:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({key: summary[key] for key in summary if key != name}, SCHEMA)


def test_an_interrupted_run_measures_only_what_is_missing(tmp_path: Path) -> None:
    measured = []

    def measure(name: str) -> dict[str, Any]:
        measured.append(name)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return {"speed": float(len(measured))}

    def run() -> list[dict[str, Any]]:
        begun = Result(tmp_path, "storage", {"files": 30}, parts=2)
        return [begun.part(name, partial(measure, name)) for name in ("a", "b")]

    with pytest.raises(KeyboardInterrupt):
        run()
    # What it was writing when it ended.
    with (tmp_path / "progress.jsonl").open("a") as file:
        file.write('{"part": "b", "val')
    assert [part["speed"] for part in run()] == [1.0, 3.0]
    assert measured == ["a", "b", "b"]
    assert [line.get("part") for line in result.read_lines(tmp_path / "progress.jsonl")] == [
        None,
        "a",
        "b",
    ]


def test_a_folder_takes_no_run_of_another_kind(tmp_path: Path) -> None:
    Result(tmp_path, "storage", {"files": 30}, parts=1)
    with pytest.raises(ResultError, match=r"files = 30, not 31: use another folder"):
        Result(tmp_path, "storage", {"files": 31}, parts=1)
    with pytest.raises(ResultError, match="holds a run of 'storage'"):
        Result(tmp_path, "network", {"files": 30}, parts=1)


def test_a_run_from_before_an_upgrade_goes_on_where_a_new_option_is_empty(tmp_path: Path) -> None:
    Result(tmp_path, "storage", {"files": 30}, parts=1)
    Result(tmp_path, "storage", {"files": 30, "nas_api": ""}, parts=1)
    with pytest.raises(ResultError, match=r"nas_api = None, not 'https://nas'"):
        Result(tmp_path, "storage", {"files": 30, "nas_api": "https://nas"}, parts=1)


def test_a_run_goes_on_where_a_full_disk_cut_a_line_short(tmp_path: Path) -> None:
    progress = tmp_path / "progress.jsonl"
    progress.write_text('{"benchm')
    for _ in range(2):
        Result(tmp_path, "storage", {"files": 30}, parts=1).part("a", lambda: {"speed": 1.0})
    assert [line.get("part") for line in result.read_lines(progress)] == [None, "a"]
    # What is sampled is added to the line that was cut short.
    samples = tmp_path / "nas.jsonl"
    samples.write_text('{"time": 1}\n{"time": 2, "re{"time": 3}\n{"time": 4}\n')
    assert result.read_lines(samples) == [{"time": 1}, {"time": 4}]


def test_what_was_measured_stays_where_a_full_disk_takes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Result(tmp_path, "storage", {"files": 30}, parts=2).part("a", lambda: {"speed": 1.0})
    before = result.read_lines(tmp_path / "progress.jsonl")

    def full(file: Path, text: str) -> int:
        file.touch()
        os.truncate(file, 0)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        Result(tmp_path, "storage", {"files": 30}, parts=2)
    assert result.read_lines(tmp_path / "progress.jsonl") == before


def test_what_was_measured_stays_while_it_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Result(tmp_path, "storage", {"files": 30}, parts=2).part("a", lambda: {"speed": 1.0})
    before = (tmp_path / "progress.jsonl").read_bytes()

    def stale(file: Path) -> str:
        raise OSError(errno.ESTALE, "Stale file handle", str(file))

    monkeypatch.setattr(Path, "read_text", stale)
    with pytest.raises(ResultError, match=r"cannot be read \(Stale file handle\)"):
        Result(tmp_path, "storage", {"files": 30}, parts=2)
    assert (tmp_path / "progress.jsonl").read_bytes() == before


def test_a_run_does_not_go_on_where_something_else_computes(tmp_path: Path) -> None:
    Result(tmp_path, "training", {"batch": 64}, 2, "Tesla V100").part("a", lambda: {"speed": 1.0})
    Result(tmp_path, "training", {"batch": 64}, 2, "Tesla V100")
    words = "a run on Tesla V100, and this is NVIDIA A100: use another folder"
    with pytest.raises(ResultError, match=words):
        Result(tmp_path, "training", {"batch": 64}, 2, "NVIDIA A100")


def test_a_run_from_before_an_upgrade_does_not_say_what_computed(tmp_path: Path) -> None:
    Result(tmp_path, "training", {"batch": 64}, parts=1)
    Result(tmp_path, "training", {"batch": 64}, 1, "NVIDIA A100")


def test_a_machine_names_its_gpus_or_its_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "gpus", lambda: [{"name": "Tesla V100"}] * 4)
    assert machine.device() == "Tesla V100"
    monkeypatch.setattr(machine, "gpus", list)
    assert machine.device() == HOST["processor"]


def test_runs_of_a_benchmark_are_found_with_the_oldest_first(tmp_path: Path) -> None:
    for name, date in (("new", "2026-02-01"), ("old", "2026-01-01")):
        summary = finished(tmp_path / "site" / name) | {"date": date}
        (tmp_path / "site" / name / "summary.json").write_text(json.dumps(summary))
    finished(tmp_path / "other", "storage")
    found = summaries(tmp_path, "training")
    assert [one["date"] for one in found] == ["2026-01-01", "2026-02-01"]


def test_results_of_newer_programs_are_not_read_as_ours(tmp_path: Path) -> None:
    summary = finished(tmp_path / "run")
    (tmp_path / "run/summary.json").write_text(json.dumps(summary | {"schema": 2}))
    with pytest.raises(NewerResultError, match=r"has schema 2, .* read up to 1: open a new copy"):
        summaries(tmp_path, "training")
    (tmp_path / "run/summary.json").write_text(
        json.dumps({key: one for key, one in summary.items() if key != "schema"})
    )
    assert len(summaries(tmp_path, "training")) == 1


# Two sockets with two cores of two threads each, as /proc/cpuinfo of an x86 host has them.
CPUINFO = "\n\n".join(
    f"processor\t: {number}\nphysical id\t: {number // 2 % 2}\ncore id\t\t: {number % 2}"
    for number in range(8)
)


def test_two_threads_of_a_core_are_one() -> None:
    assert machine.physical_cores(CPUINFO, range(8)) == 4
    assert machine.physical_cores(CPUINFO, [0, 4]) == 1
    assert machine.physical_cores(CPUINFO, [0, 1, 2]) == 3


def test_processors_that_say_nothing_of_cores_are_cores() -> None:
    assert machine.physical_cores("processor : 0\n\nprocessor : 1\n\nHardware : x", [0, 1]) == 2
    assert machine.physical_cores("", [0, 1]) == 2


def test_only_packages_that_are_there_have_versions() -> None:
    found = machine.versions("pytest", "no-such-package")
    assert found["pytest"] == pytest.__version__
    assert "no-such-package" not in found


BATCH = {
    "SLURM_JOB_ID": "12",
    "SLURM_PROCID": "0",
    "SLURM_JOB_NUM_NODES": "3",
    "SLURM_CPUS_ON_NODE": "32",
    "SLURM_NTASKS_PER_NODE": "4",
}


def test_a_batch_script_has_all_nodes_of_its_job() -> None:
    # Also one that was submitted from a session, whose variables it has, too.
    variables = BATCH | {"JUPYTERHUB_SERVICE_PREFIX": "/user/you/"}
    assert steps.nodes(variables) == Nodes(3, in_job=True, cores=32, tasks=4)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        # A session, and a process that srun started: one of many, which starts no others.
        {
            "SLURM_JOB_ID": "12",
            "SLURM_JOB_NUM_NODES": "1",
            "JUPYTERHUB_SERVICE_PREFIX": "/user/you",
        },
        BATCH | {"SLURM_STEP_ID": "0"},
    ],
)
def test_elsewhere_there_is_this_machine(variables: dict[str, str]) -> None:
    assert steps.nodes(variables) == Nodes(1, in_job=False)


def test_a_step_shares_the_cores_of_a_node_among_its_processes() -> None:
    there = Nodes(3, in_job=True, cores=32, tasks=4)
    words = steps.argv(there, ["python", "x.py"], on=2, each=4, options=["--gres=gpu:4"])
    assert words[0] == steps.SRUN
    assert words[-3:] == ["--gres=gpu:4", "python", "x.py"]
    assert {"--nodes=2", "--ntasks=8", "--ntasks-per-node=4", "--cpus-per-task=8"} < set(words)


@pytest.mark.parametrize(
    ("there", "on", "each"),
    [(Nodes(3, in_job=True), 4, 1), (Nodes(1, in_job=False), 1, 2), (Nodes(1, in_job=False), 2, 1)],
)
def test_more_nodes_than_there_are_cannot_be_measured(there: Nodes, on: int, each: int) -> None:
    with pytest.raises(StepError, match="submit it to Slurm"):
        steps.argv(there, ["true"], on=on, each=each)


def test_what_a_step_printed_is_returned() -> None:
    command = steps.argv(Nodes(1, in_job=False), [sys.executable, "-c", "print(3)"])
    assert steps.run(command, 30) == "3\n"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit('no disk')", "ended with 1: no disk"),
        ("import time; time.sleep(60)", "did not end within 0 s"),
    ],
)
def test_a_step_that_fails_is_told_with_its_words(program: str, words: str) -> None:
    seconds = 0.2 if "sleep" in program else 30
    with pytest.raises(StepError, match=words):
        steps.run([sys.executable, "-c", program], seconds)
    with pytest.raises(StepError, match="/no/such/program"):
        steps.run(["/no/such/program"], 30)


def test_this_machine_describes_itself() -> None:
    assert steps.hosts(Nodes(1, in_job=False)) == [HOST]
    described = Path(machine.__file__)
    printed = subprocess.run(
        [sys.executable, described], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    assert json.loads(printed) == HOST


# A program that measures, asks for Slurm's signal before the time is up, and says how it ended.
STOPPED = """
import sys
from measurement import interruption, steps

interruption.stop_in_order()
child = "import os, signal, time; os.kill(os.getppid(), signal.SIGUSR1); time.sleep(60)"
try:
    steps.run([sys.executable, "-c", child], 60)
except interruption.Interrupted as error:
    print(error)
"""


def test_slurms_signal_before_the_end_is_told_in_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED],
        cwd=Path(steps.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    (said,) = done.stdout.splitlines()
    assert said.startswith("stopped by SIGUSR1; ")
    assert "run it again" in said


def test_figures_are_kept_when_the_process_crashes_as_it_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    crash = "print('{\"speed\": 8}', flush=True); import os; os.abort()"
    assert steps.answer([sys.executable, "-c", crash], 60) == {"speed": 8}
    assert "ended with -6 after it had told its figures" in capsys.readouterr().err


def test_what_a_library_logs_beside_the_figures_goes_to_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    says = "print('before'); print('{\"speed\": 8}'); print('NCCL INFO comm 0x1 destroyed')"
    assert steps.answer([sys.executable, "-c", says], 60) == {"speed": 8}
    assert capsys.readouterr().err == "before\nNCCL INFO comm 0x1 destroyed\n"


@pytest.mark.parametrize("says", ["", "print('{\"speed\": ')", "print(12)"])
def test_a_crash_before_the_figures_is_an_error(says: str) -> None:
    with pytest.raises(StepError, match="ended with 3"):
        steps.answer([sys.executable, "-c", f"{says}\nraise SystemExit(3)"], 60)
