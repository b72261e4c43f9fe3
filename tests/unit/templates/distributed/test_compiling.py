"""What torch.compile needs on a node is looked for before it is missed in the first step."""

import sysconfig
from pathlib import Path

import compiling
import pytest


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a compiler and Python's headers, which is all that there is."""
    compiler = tmp_path / "gcc"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    (tmp_path / "Python.h").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(sysconfig, "get_path", {"include": str(tmp_path)}.get)
    return tmp_path


def test_with_a_compiler_and_headers_nothing_is_missing(machine: Path) -> None:
    assert compiling.missing(machine) is None


def test_a_missing_compiler_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "gcc").unlink()
    assert compiling.missing(machine) == "there is no C compiler (gcc, clang, cc)"
    monkeypatch.setenv("CC", "nvc")
    assert compiling.missing(machine) == "there is no C compiler (nvc)"


def test_only_what_is_asked_for_and_can_work_is_compiled(machine: Path) -> None:
    said: list[str] = []
    wanted = {
        (asked, has_gpu): compiling.is_wanted(asked, has_gpu, said.append)
        for asked in compiling.CHOICES
        for has_gpu in (False, True)
    }
    assert {one for one, is_wanted in wanted.items() if is_wanted} == {
        ("auto", True),
        ("yes", True),
        ("yes", False),
    }
    assert not said
    (machine / "gcc").unlink()
    assert not compiling.is_wanted("yes", True, said.append)
    assert said == [
        "not compiled by torch.compile: there is no C compiler (gcc, clang, cc)",
    ]


def test_missing_headers_are_named(machine: Path) -> None:
    (machine / "Python.h").unlink()
    said = compiling.missing(machine)
    assert said == f"Python's headers are missing ({machine / 'Python.h'})"
