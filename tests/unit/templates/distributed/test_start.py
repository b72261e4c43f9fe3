"""Which run a notebook's cell means: the one that runs, the one that failed, or a new one.

Slurm's answers stand here in the test; tests/integration/templates asks the real one.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jobs
import pytest
import runs
from plans import Plan

from tests.instance import ROOT

TEMPLATES = ROOT / "notebook_templates"
PLAN = Plan(nodes=1, gpus_per_node=0, settings={"rate": 0.1}, name="some")


class Queue:
    """Jobs by number, and the states that Slurm would say."""

    def __init__(self) -> None:
        self.submitted: list[Path] = []
        self.words: dict[int, str] = {}

    def submit(self, script: Path, folder: Path) -> jobs.BatchJob:
        assert script.parent == folder
        self.submitted.append(folder)
        self.words[len(self.submitted)] = "RUNNING"
        return jobs.BatchJob(len(self.submitted))


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    made = Queue()
    monkeypatch.setattr(jobs, "submit", made.submit)
    state = lambda job: jobs.JobStatus(made.words[job.number])  # noqa: E731
    monkeypatch.setattr(jobs.BatchJob, "state", state)
    return made


@pytest.fixture
def start(queue: Queue, tmp_path: Path) -> Callable[[Plan], str]:
    """Start a plan; returns the name of the run's folder."""
    return lambda plan: runs.start(plan, tmp_path).folder.name


Start = Callable[[Plan], str]


def test_a_run_that_runs_is_found_again(start: Start, queue: Queue) -> None:
    assert [start(PLAN), start(PLAN)] == ["some", "some"]
    assert len(queue.submitted) == 1


def test_another_learning_rate_is_another_run(start: Start, queue: Queue) -> None:
    assert start(PLAN) == "some"
    other = replace(PLAN, settings={"rate": 0.2})
    assert [start(other), start(PLAN), start(other)] == ["some-2", "some", "some-2"]
    assert len(queue.submitted) == 2


@pytest.mark.parametrize("word", ["FAILED", "TIMEOUT", "CANCELLED", "COMPLETED"])
def test_a_run_that_did_not_come_to_its_end_goes_on(
    word: str, start: Start, queue: Queue, tmp_path: Path
) -> None:
    assert start(PLAN) == "some"
    queue.words[1] = word
    # With more time, which is the same training.
    assert start(replace(PLAN, minutes=120)) == "some"
    assert len(queue.submitted) == 2
    assert "--time=120" in (tmp_path / "some/job.sh").read_text()


def test_a_run_that_came_to_its_end_stays_as_it_is(
    start: Start, queue: Queue, tmp_path: Path
) -> None:
    start(PLAN)
    queue.words[1] = "COMPLETED"
    (tmp_path / "some/summary.json").write_text("{}")
    assert start(PLAN) == "some-2"


def test_a_run_in_the_session_is_found_by_its_settings(start: Start, tmp_path: Path) -> None:
    def here(plan: Plan) -> str:
        return runs.here(plan, tmp_path).folder.name

    # A job's folder is not taken, though it was asked for the same.
    assert [start(PLAN), here(PLAN)] == ["some", "some-2"]
    other = replace(PLAN, settings={"rate": 0.2})
    assert [here(PLAN), here(other), here(PLAN), here(other)] == ["some-2", "some-3"] * 2


def test_more_steps_continue_a_run_in_the_session(tmp_path: Path) -> None:
    def here(**settings: object) -> str:
        return runs.here(replace(PLAN, settings={"rate": 0.1, **settings}), tmp_path).folder.name

    more = {"steps": 200, "report-every": 5}
    assert [here(steps=100), here(**more), here(steps=100)] == ["some"] * 3
    assert [here(steps=100, rate=0.2), here(rate=0.2, steps=300)] == ["some-2"] * 2
    # A table's model with more rounds is one to compare with.
    assert [here(rounds=10), here(rounds=20)] == ["some-3", "some-4"]


def test_a_run_is_found_again_after_the_disk_was_full(
    start: Start, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def emptied(file: Path, *_: str) -> None:
        file.open("w").close()
        no_space()

    start(PLAN)
    queue.words[1] = "FAILED"
    with monkeypatch.context() as full:
        full.setattr(Path, "write_text", emptied)
        full.setattr(os, "fsync", no_space)
        with pytest.raises(OSError, match="No space left"):
            start(PLAN)
    # What bash made of a summary that did not fit.
    (tmp_path / "some/summary.json").touch()
    assert start(PLAN) == "some"


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_folder_that_does_not_say_what_it_was_asked_for_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some/asked.json").touch()
    assert runs.here(PLAN, tmp_path).folder.name == "some"


@pytest.mark.parametrize(
    "notebook",
    [one for one in sorted(TEMPLATES.glob("*/*.ipynb")) if "runs.start(" in one.read_text()],
    ids=lambda notebook: notebook.stem,
)
def test_no_notebook_takes_a_folder_by_its_name_alone(notebook: Path) -> None:
    assert "runs.Run(" not in notebook.read_text()
