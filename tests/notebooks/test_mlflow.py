"""Runs of the templates that are kept in MLflow, with MLflow's own client, as kernels have it."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsportal.session.tracking import mlflow_variables
from tests.instance import ROOT

FINETUNE = ROOT / "notebook_templates/language/finetune.py"
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
    done = subprocess.run(
        command,
        env={**os.environ, **mlflow_variables("~/mlflow", str(home), "user1")},
        cwd=home / "notebooks",
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    return done.stdout + done.stderr


def finetune(python: Path, home: Path, steps: int, **options: object) -> str:
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    command = [python, "-B", FINETUNE, "--results", home / "run", "--steps", str(steps)]
    return in_session(home, *command, "--report-every", "5", "--batch", "2", *words)


def kept(python: Path, home: Path) -> list[dict[str, Any]]:
    return list(json.loads(in_session(home, python, "-c", RUNS).splitlines()[-1]))


def test_a_notebooks_run_needs_no_set_up_and_leaves_nothing_beside_it(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    printed = in_session(tmp_path, python_of("pytorch"), "-c", LOGS)
    artifacts = printed.splitlines()[-1].removeprefix("file://")
    assert Path(artifacts, "words.txt").read_text() == "hello"
    assert Path(artifacts).is_relative_to(tmp_path / "mlflow"), printed
    assert not list((tmp_path / "notebooks").iterdir())


@pytest.mark.timeout(600)
def test_a_run_that_goes_on_is_one_in_mlflow(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    python = python_of("pytorch")
    # Parts of it before the last checkpoint are reported twice.
    said = finetune(python, tmp_path, 10, mlflow="licences")
    (run,) = kept(python, tmp_path)
    assert (run["status"], run["name"], run["points"]) == ("FINISHED", "run", 2), said
    assert run["params"]["rate"] == "0.002"
    assert run["folder"] == str(tmp_path / "run")
    said = finetune(python, tmp_path, 20, mlflow="licences")
    (run,) = kept(python, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "run/progress.jsonl").read_text().split("\n")[:-1]]
    assert run["losses"] == pytest.approx({line["step"]: line["loss"] for line in lines}), said
    assert (run["status"], run["points"]) == ("FINISHED", 4)


def test_a_training_that_fails_is_a_failed_run(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    python = python_of("pytorch")
    finetune(python, tmp_path, 5, mlflow="licences")
    # Where the summary is to be there is something in the way.
    (tmp_path / "run/summary.json").unlink()
    (tmp_path / "run/summary.json").mkdir()
    said = finetune(python, tmp_path, 10, mlflow="licences")
    assert "Is a directory" in said
    (run,) = kept(python, tmp_path)
    assert run["status"] == "FAILED"


def test_a_training_does_not_fail_because_mlflow_does(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "mlflow").write_text("not a folder")
    said = finetune(python_of("pytorch"), tmp_path, 5, mlflow="licences")
    assert "nothing more is kept in MLflow:" in said
    assert json.loads((tmp_path / "run/summary.json").read_text())["steps"] == 5
