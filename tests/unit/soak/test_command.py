"""The command that lets a day pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from benchmarks.portal.soak import __main__ as command
from tests import instance


def test_a_day_is_told_even_if_the_instance_cannot_be_taken_down(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def running() -> Iterator[None]:
        yield
        raise RuntimeError("deploy/down has failed")

    monkeypatch.setattr(instance, "running", running)
    monkeypatch.setattr(command, "soak", lambda *_: SimpleNamespace())
    monkeypatch.setattr(command, "told", lambda *_, **__: "what the day has shown")
    with pytest.raises(RuntimeError, match="deploy/down"):
        command.main([])
    assert capsys.readouterr().out == "what the day has shown\n"


def test_a_day_longer_than_a_session_may_be_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.wanted(["--minutes", "720"]).minutes == 720
    with pytest.raises(SystemExit):
        command.wanted(["--minutes", "721"])
    assert "--minutes is at most 720" in capsys.readouterr().err
