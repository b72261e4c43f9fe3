"""A training goes on whatever becomes of MLflow."""

import argparse
import json
import sys
import threading
from pathlib import Path

import pytest
import tracker
from record import Record, run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{tmp_path}/mlflow")
    return tmp_path


def settings(results: Path, experiment: str) -> argparse.Namespace:
    return argparse.Namespace(results=str(results), mlflow=experiment)


def trained(place: Path) -> list[float]:
    """Report a step as a training does; give the losses that are written."""
    record = Record(place, is_ours=True, step=0, settings=settings(place, "digits"))
    record.add({"epoch": 1, "step": 1, "loss": 0.5})
    record.close(is_whole=True)
    lines = (place / "progress.jsonl").read_text().splitlines()
    return [json.loads(line)["loss"] for line in lines]


def test_without_mlflow_a_training_goes_on_and_says_so(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    assert trained(place) == [0.5]
    assert "nothing more is kept in MLflow: ModuleNotFoundError" in capsys.readouterr().out


def test_without_a_place_for_runs_none_is_made_up(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert trained(place) == [0.5]
    assert "MLFLOW_TRACKING_URI is not set" in capsys.readouterr().out


def test_nothing_is_kept_unless_asked_for(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = Record(place, is_ours=True, step=0, settings=settings(place, ""))
    record.close(is_whole=True)
    assert "MLflow" not in capsys.readouterr().out
    assert not (place / "mlflow").exists()


def test_neither_a_step_nor_the_end_waits_for_mlflow_for_long(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    released = threading.Event()
    monkeypatch.setattr(tracker.Tracker, "_write", lambda _self: released.wait(60))
    monkeypatch.setattr(tracker, "CLOSING_SECONDS", 0.1)
    try:
        assert trained(place) == [0.5]
    finally:
        released.set()
    assert "not all is kept there" in capsys.readouterr().out


def test_a_training_that_fails_ends_its_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    monkeypatch.setattr("os._exit", lambda _code: None)
    monkeypatch.setattr(tracker.Tracker, "_write", lambda self: ended.append(self._waiting.get()))

    def main(asked: argparse.Namespace) -> None:
        Record(place, is_ours=True, step=0, settings=asked)
        raise ValueError("bad")

    run(main, settings(place, "digits"), ValueError)
    assert ended == ["FAILED"]
