"""Runs of the templates that are kept in MLflow, with MLflow's own client, as kernels have it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsportal.session.tracking import mlflow_variables
from tests.instance import ROOT
from tests.notebooks.running import said_by
from tests.training import tiny_models

PROGRAMS = [
    ("language/finetune.py", ("--length", "64")),
    ("vision/train_vit.py", ("--workers", "0")),
]
RUNS = """
import json
from mlflow import MlflowClient

client = MlflowClient()
(experiment,) = [one for one in client.search_experiments() if one.name == "licences"]
found = []
for run in client.search_runs([experiment.experiment_id]):
    history = client.get_metric_history(run.info.run_id, "loss")
    found.append(
        {
            "status": run.info.status,
            "name": run.info.run_name,
            "params": run.data.params,
            "folder": run.data.tags["folder"],
            "losses": {one.step: one.value for one in history},
            "points": len(history),
        }
    )
print(json.dumps(found))
"""
REPORTS = """
import argparse, json, os, sys, time
from pathlib import Path

root, folder, ending, steps = sys.argv[1:]
sys.path.append(f"{root}/notebook_templates/distributed")
from record import Record, run

def main(settings):
    results = Path(settings.results)
    results.mkdir(exist_ok=True)
    record = Record(results, True, 0, settings)
    for step in map(int, steps.split()):
        record.add({"epoch": 1, "step": step, "loss": 1 / step})
    if ending == "died":
        # By a signal, once MLflow knows that it goes on.
        from mlflow import MlflowClient
        run = json.loads((results / "mlflow.json").read_text())["run"]
        until = time.monotonic() + 60
        while MlflowClient().get_run(run).info.status != "RUNNING" and time.monotonic() < until:
            time.sleep(0.1)
        os._exit(137)
    if ending == "failed":
        raise ValueError("no such data")
    record.close(is_whole=ending == "whole")

run(main, argparse.Namespace(results=folder, mlflow="licences"), ValueError)
"""
LOGS = """
import mlflow

with mlflow.start_run() as run:
    mlflow.log_param("rate", 0.1)
    mlflow.log_metric("loss", 0.5)
    mlflow.log_text("hello", "words.txt")
print(run.info.artifact_uri)
"""


def in_session(home: Path, *command: str | Path) -> str:
    """Run a program as a session's variables have it; give what it printed."""
    (home / "notebooks").mkdir(parents=True, exist_ok=True)
    variables = mlflow_variables("~/mlflow", str(home), "user1")
    return said_by(command, variables, home / "notebooks")


def kept(python: Path, home: Path) -> list[dict[str, Any]]:
    return list(json.loads(in_session(home, python, "-c", RUNS).splitlines()[-1]))


def test_a_notebooks_run_needs_no_set_up_and_leaves_nothing_beside_it(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    printed = in_session(tmp_path, preloaded("pytorch"), "-c", LOGS)
    artifacts = printed.splitlines()[-1].removeprefix("file://")
    assert Path(artifacts, "words.txt").read_text() == "hello"
    assert Path(artifacts).is_relative_to(tmp_path / "mlflow"), printed
    assert not list((tmp_path / "notebooks").iterdir())


def test_what_is_reported_again_after_a_break_is_kept_once(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python = preloaded("pytorch")
    told = ("broken", "5 10"), ("whole", "10 15")
    for ending, steps in told:
        in_session(tmp_path, python, "-B", "-c", REPORTS, ROOT, tmp_path / "run", ending, steps)
    (run,) = kept(python, tmp_path)
    assert (run["losses"], run["points"]) == ({"5": 0.2, "10": 0.1, "15": 1 / 15}, 3)
    assert run["status"] == "FINISHED"
    # A run that its user has removed is begun once more.
    shutil.rmtree(tmp_path / "mlflow")
    in_session(tmp_path, python, "-B", "-c", REPORTS, ROOT, tmp_path / "run", "whole", "20")
    (run,) = kept(python, tmp_path)
    assert run["losses"] == {"20": 0.05}


def test_a_training_does_not_fail_because_mlflow_does(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "mlflow").write_text("not a folder")
    python = preloaded("pytorch")
    said = in_session(tmp_path, python, "-B", "-c", REPORTS, ROOT, tmp_path / "run", "whole", "5")
    assert "nothing more is kept in MLflow: " in said
    assert json.loads((tmp_path / "run/progress.jsonl").read_text())["loss"] == 0.2
    assert not (tmp_path / "run/error.txt").exists()


def test_a_run_in_mlflow_says_how_its_training_ended(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python = preloaded("pytorch")
    for ending, status in (("broken", "KILLED"), ("died", "RUNNING"), ("failed", "FAILED")):
        in_session(tmp_path, python, "-B", "-c", REPORTS, ROOT, tmp_path / "run", ending, "5")
        (run,) = kept(python, tmp_path)
        assert run["status"] == status


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("program", "options"), PROGRAMS)
def test_a_run_that_goes_on_is_one_in_mlflow(
    program: str, options: tuple[str, ...], preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python = preloaded("pytorch")
    command: list[str | Path] = [
        python,
        "-B",
        ROOT / "notebook_templates" / program,
        "--results",
        tmp_path / "run",
    ]
    if "language" in program:
        tiny_models.make(python, tiny_models.text(tmp_path / "model"))
        command += ["--model", tmp_path / "model"]
    command += ["--batch", "4", "--report-every", "5", "--mlflow", "licences", *options]
    for steps in (5, 10):
        said = in_session(tmp_path, *command, "--steps", str(steps))
    (run,) = kept(python, tmp_path)
    written = (tmp_path / "run/progress.jsonl").read_text().splitlines()
    losses = {
        str(line["step"]): line["loss"] for line in map(json.loads, written) if "loss" in line
    }
    assert run["losses"] == pytest.approx(losses), said
    assert (run["status"], run["name"], run["points"]) == ("FINISHED", "run", 2)
    assert run["params"]["batch"] == "4"
    assert run["folder"] == str(tmp_path / "run")
