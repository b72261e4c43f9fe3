"""The command that lets a day pass."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from benchmarks.portal.soak import __main__ as command
from tests import instance


@pytest.mark.parametrize("is_stuck", [False, True], ids=["instance", "stand-in"])
def test_a_day_is_told_even_if_the_instance_or_a_stand_in_cannot_be_removed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_stuck: bool
) -> None:
    @contextmanager
    def running() -> Iterator[None]:
        yield
        raise RuntimeError("deploy/down has failed")

    def soak(_portal: object, _wanted: object, keep: Callable[[object], object]) -> object:
        keep(SimpleNamespace())
        if is_stuck:
            raise AssertionError("not within 30 s: the disk is free")
        return SimpleNamespace()

    monkeypatch.setattr(instance, "running", running)
    monkeypatch.setattr(command, "soak", soak)
    monkeypatch.setattr(command, "told", lambda *_, **__: "what the day has shown")
    with pytest.raises((AssertionError, RuntimeError), match=r"deploy/down|the disk is free"):
        command.main([])
    assert capsys.readouterr().out == "what the day has shown\n"


def test_a_day_longer_than_a_session_may_be_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.wanted(["--minutes", "720"]).minutes == 720
    with pytest.raises(SystemExit):
        command.wanted(["--minutes", "721"])
    assert "--minutes is at most 720" in capsys.readouterr().err
