"""What `deploy/remove` asks before anything goes."""

import json
import runpy
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import bootstrap
import pytest

ROOT = Path(__file__).resolve().parents[4]


class Terminal(StringIO):
    """Somebody who types an answer."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "deploy/remove"))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, bool]]:
    """Return the variables of each run, which does nothing."""
    runs: list[dict[str, bool]] = []

    def play(_playbook: str, _inventory: str, arguments: list[str]) -> int:
        runs.append(json.loads(arguments[0].removeprefix("--extra-vars=")))
        return 1

    monkeypatch.setattr(bootstrap, "play", play)
    monkeypatch.setattr(bootstrap, "CACHE", tmp_path)
    return runs


@pytest.mark.parametrize(
    ("options", "typed", "keeps"),
    [
        (["--keep-data"], None, True),
        (["--delete-data"], None, False),
        ([], "keep\n", True),
        ([], "delete\n", False),
    ],
)
def test_data_stay_or_go_as_was_said(
    options: list[str],
    typed: str | None,
    keeps: bool,
    script: dict[str, Any],
    played: list[dict[str, bool]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["deploy/remove", "test", *options])
    monkeypatch.setattr(sys, "stdin", StringIO() if typed is None else Terminal(typed))
    assert script["main"]() == 1
    assert played == [{"instance_keep": False, "instance_keep_data": keeps}]


@pytest.mark.parametrize("stdin", [StringIO("delete\n"), Terminal("y\n"), Terminal("")])
def test_without_a_clear_answer_nothing_is_changed(
    stdin: StringIO,
    script: dict[str, Any],
    played: list[dict[str, bool]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["deploy/remove", "test"])
    monkeypatch.setattr(sys, "stdin", stdin)
    assert script["main"]() == 2
    assert played == []


def test_tools_stay_after_a_failure(
    script: dict[str, Any],
    played: list[dict[str, bool]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "tools").touch()
    monkeypatch.setattr(sys, "argv", ["deploy/remove", "test", "--keep-data"])
    assert script["main"]() == 1
    assert (tmp_path / "tools").exists()
