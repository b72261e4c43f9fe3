"""`make test` begins from nothing, whatever an earlier run was cut off in."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

import pytest

from tests.instance import ROOT


@pytest.fixture
def program() -> ModuleType:
    loader = SourceFileLoader("deploy_test", str(ROOT / "deploy/test"))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("failing", "expected"),
    [("", ["down", "up", "tests", "down"]), ("up", ["down", "up", "down"])],
)
def test_instances_are_made_anew_and_taken_down(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, failing: str, expected: list[str]
) -> None:
    done: list[str] = []

    def instances(verb: str, *_: object) -> int:
        done.append(verb)
        return int(verb == failing)

    def here(*_: object, **__: object) -> list[str]:
        done.append("tests")
        return []

    monkeypatch.setattr(program, "instances", instances)
    monkeypatch.setattr(program, "here", here)
    monkeypatch.setattr(program.bootstrap, "environment", lambda *_: (ROOT, False))
    monkeypatch.setattr(program.signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["deploy/test", "tests/unit/deploy"])
    assert program.main() == int(bool(failing))
    assert done == expected
