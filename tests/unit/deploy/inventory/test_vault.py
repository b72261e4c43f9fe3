"""What `deploy/up` and the other programs of its kind tell Ansible of an inventory's vault."""

import runpy
import sys
from pathlib import Path

import bootstrap
import pytest
import vault

ROOT = Path(__file__).resolve().parents[4]
PROGRAMS: dict[str, list[str]] = {"up": [], "down": [], "prune": [], "remove": ["--keep-data"]}


def arguments_of(
    program: str, options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> list[str]:
    """Return what Ansible would be told; nothing is run."""
    told: list[str] = []

    def play(_playbook: str, _inventory: str, arguments: list[str]) -> int:
        told.extend(arguments)
        return 1

    monkeypatch.setattr(bootstrap, "play", play)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [program, "test", *PROGRAMS[program], *options])
    assert runpy.run_path(str(ROOT / "deploy" / program))["main"]() == 1
    return [argument for argument in told if "vault" in argument]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_file_is_looked_for_where_one_types(
    program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = ["--vault-password-file", "password"]
    told = arguments_of(program, options, monkeypatch, tmp_path)
    assert told == [f"--vault-password-file={tmp_path}/password"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_terminal_is_asked(
    program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(vault, "has_terminal", lambda: True)
    told = arguments_of(program, ["--ask-vault-pass"], monkeypatch, tmp_path)
    assert told == ["--ask-vault-pass"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_vault_is_no_option(
    program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert arguments_of(program, [], monkeypatch, tmp_path) == []


def test_no_terminal_is_said_and_what_to_give(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(vault, "has_terminal", lambda: False)
    with pytest.raises(bootstrap.DeploymentError, match="give --vault-password-file"):
        arguments_of("up", ["--ask-vault-pass"], monkeypatch, tmp_path)
