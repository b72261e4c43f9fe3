"""The time of epochs, and until an accuracy."""

import json
from pathlib import Path
from typing import Any

import pytest
from record import Record
from runs.epochs import epochs, markdown, seconds_to

LINES: list[dict[str, Any]] = [
    {"epoch": 1, "step": 10, "elapsed_seconds": 20.0, "accuracy": 0.5},
    {"epoch": 1, "step": 20, "elapsed_seconds": 30.0, "accuracy": 0.6},
    {"epoch": 1, "step": 20, "elapsed_seconds": 33.0, "test_accuracy": 0.70},
    {"epoch": 2, "step": 40, "elapsed_seconds": 43.0, "accuracy": 0.8},
    {"epoch": 2, "step": 40, "elapsed_seconds": 45.0, "test_accuracy": 0.76},
    {"epoch": 3, "step": 60, "elapsed_seconds": 57.0, "test_accuracy": 0.75},
]


def test_an_epoch_lasts_from_the_end_of_the_one_before_to_the_end_of_its_test() -> None:
    assert [one.seconds for one in epochs(LINES)] == [33.0, 12.0, 12.0]
    assert [one.number for one in epochs(LINES)] == [0, 1, 2]


@pytest.mark.parametrize(("accuracy", "seconds"), [(0.7, 33.0), (0.755, 45.0), (0.77, None)])
def test_the_time_to_an_accuracy_is_that_of_the_first_epoch_that_had_it(
    accuracy: float, seconds: float | None
) -> None:
    assert seconds_to(epochs(LINES), accuracy) == seconds


def test_epoch_0_is_told_apart() -> None:
    said = markdown(LINES, 0.755)
    assert "Epoch 0: 33.0 s. Later epochs: 12.0 s" in said
    assert "75.50% was reached after 45.0 s" in said
    assert "90.00% is not reached yet; the best is 76.00%" in markdown(LINES, 0.9)
    assert "Without test images" in markdown(LINES[:2], 0.9)


def test_lines_of_an_earlier_version_have_no_epochs() -> None:
    assert markdown([{"epoch": 1, "step": 10, "loss": 0.5}], 0.7).startswith("No epoch ")


def test_a_break_between_two_jobs_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Curves need TensorBoard, which tests of this kind do without.
    monkeypatch.setattr("record.Curves", type("No", (), {"__init__": _nothing, "add": _nothing}))
    now = 1000.0
    monkeypatch.setattr("record.time.monotonic", lambda: now)
    first = Record(tmp_path, is_ours=True, step=0)
    now = 1030.0
    first.add({"epoch": 1, "step": 10, "loss": 0.5})
    now = 1040.0
    first.add({"epoch": 1, "step": 15, "loss": 0.4})
    now = 9000.0
    # Of what came after the checkpoint at step 10 nothing is left, its time neither.
    second = Record(tmp_path, is_ours=True, step=10)
    now = 9005.0
    second.add({"epoch": 1, "step": 20, "loss": 0.3})
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert [line["elapsed_seconds"] for line in lines] == [30.0, 35.0]


def _nothing(*_: object) -> None:
    """Do nothing."""
