"""What the benchmarks of the portal measure."""

import asyncio
import ssl
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.portal import http, slurm_load
from benchmarks.portal.hubs import Hub
from benchmarks.portal.session_start import answers
from benchmarks.portal.spawn_storm import Press, Storm
from tests.network.sockets import free_port


def test_who_asks_whether_it_answers_reads_no_authorities_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[object] = []
    make = ssl.create_default_context

    def counted(*arguments: object, **named: object) -> ssl.SSLContext:
        made.append(arguments)
        return make(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    url = f"http://127.0.0.1:{free_port()}/"
    assert not any(answers(url) for _ in range(3))
    assert len(made) <= 1


def test_viewers_look_for_exactly_the_time_that_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now, ends = ContextVar("now", default=0.0), []

    async def sleep(seconds: float) -> None:
        now.set(now.get() + seconds)
        ends.append(now.get())

    async def request(*_: object) -> tuple[int, str]:
        return 200, ""

    fake = SimpleNamespace(sleep=sleep, gather=asyncio.gather)
    monkeypatch.setattr(slurm_load, "asyncio", fake)
    monkeypatch.setattr(slurm_load, "time", SimpleNamespace(monotonic=now.get))
    monkeypatch.setattr(http, "request", request)
    hub = Hub("ours", 1, 1, Path("hub.log"), Path("executions"))
    asyncio.run(slurm_load._view(hub, {f"viewer{number}": "" for number in range(4)}, 60.0))
    assert max(ends) == 60.0


@pytest.mark.parametrize(
    ("failure", "jobs", "failed_answers", "is_whole"),
    [
        ("", 1, 0, True),
        ("429", 1, 0, False),
        ("", 0, 0, False),
        ("", 2, 0, False),
        ("", 1, 1, False),
    ],
)
def test_a_storm_in_which_something_failed_is_not_whole(
    failure: str, jobs: int, failed_answers: int, is_whole: bool
) -> None:
    presses = [Press("a", 1.0), Press("b", None if failure else 2.0, failure=failure)]
    found = Storm(2.0, presses, {}, failed_answers, 1.0, {}, {"a": 1, "b": jobs})
    assert found.is_whole is is_whole
