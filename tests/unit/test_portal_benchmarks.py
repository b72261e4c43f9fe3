"""What the benchmarks of the portal measure."""

import asyncio
import os
import ssl
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.portal import proxy_load, slurm_load
from benchmarks.portal.harness import http, sampler
from benchmarks.portal.harness.hubs import Hub
from benchmarks.portal.harness.phases import JobSample
from benchmarks.portal.harness.sampler import Program
from benchmarks.portal.session_start import StartEye, answers
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


def test_a_program_is_known_by_its_command_line_and_its_user() -> None:
    me, word = os.getuid(), f"word-of-{os.getpid()}"
    wanted = {
        "mine": Program(word, me),
        "anybodys": Program(word),
        "another's": Program(word, me + 1),
        "none": Program(f"{word}-more"),
    }
    assert sampler.running(wanted) == frozenset()
    argv = [sys.executable, "-c", "print(flush=True); input()", word]
    before = time.time()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert sampler.running(wanted) == {"mine", "anybodys"}
        a_tick = 1 / os.sysconf("SC_CLK_TCK")
        assert before - 2 * a_tick <= sampler.started_at(wanted["mine"]) <= time.time()
        process.communicate(b"\n")
    assert sampler.running(wanted) == frozenset()
    with pytest.raises(ValueError, match="empty"):
        sampler.started_at(wanted["mine"])


def test_who_looks_goes_on_until_all_is_over_though_it_is_done() -> None:
    states = iter(["RUNNING", "COMPLETING", "COMPLETING", "CANCELLED", "CANCELLED"])
    samples, result = sampler.while_doing(
        lambda: "done", lambda: JobSample(0.0, next(states)), lambda sample: sample.is_over
    )
    assert ([sample.state for sample in samples][-2:], len(samples)) == (
        ["COMPLETING", "CANCELLED"],
        4,
    )
    assert result == "done"


def test_who_looks_goes_on_until_it_is_done_where_nothing_says_that_it_is_over() -> None:
    enough, looks = threading.Event(), iter(range(100))

    def look() -> JobSample:
        if next(looks) == 2:
            enough.set()
        return JobSample(0.0, "CANCELLED")

    samples, was_enough = sampler.while_doing(lambda: enough.wait(10), look)
    assert was_enough
    assert len(samples) >= 3


def test_what_fails_is_not_waited_for() -> None:
    def fails() -> None:
        raise RuntimeError("the start failed")

    with pytest.raises(RuntimeError, match="the start failed"):
        sampler.while_doing(fails, lambda: JobSample(0.0, "RUNNING"), lambda sample: sample.is_over)


def test_slurm_is_asked_of_a_start_only_while_all_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = ["", "launcher", "launcher sbatch", "", "", "", "session", "session"]
    asked: list[int] = []

    def state_of(*_: object) -> str:
        asked.append(len(samples))
        return "PENDING" if len(asked) == 1 else "RUNNING"

    seen = iter(frozenset(moment.split()) for moment in moments)
    monkeypatch.setattr(sampler, "running", lambda _: next(seen))
    monkeypatch.setattr(sampler, "state_of", state_of)
    eye = StartEye(SimpleNamespace(), {})  # type: ignore[arg-type]
    samples: list[JobSample] = []
    for _ in moments[:-1]:
        samples.append(eye.look())
    assert asked == [3, 4]
    assert [sample.state for sample in samples[3:]] == ["PENDING", "RUNNING", "RUNNING", "RUNNING"]
    assert eye.look().running == {"session"}
    assert next(seen), "it looked on"


def test_a_core_carries_as_many_pages_as_what_they_send_leaves_room_for() -> None:
    # 60 requests of 1 ms and 600 messages of 100 us in a minute: 0.12 s of it.
    page = {"seconds": 60, "requests": 60, "messages": 600}
    assert proxy_load.carried(page, message=100, request=1000) == 500
    cost = proxy_load.Cost(seconds=10, cpu={"proxy": 0.5})
    assert (cost.percent(), cost.per(1000, 1e-6)) == ({"proxy": 5.0}, {"proxy": 500.0})
