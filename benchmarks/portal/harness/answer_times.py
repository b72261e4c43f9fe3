"""How long a hub takes to answer, asked every 50 ms whatever it does.

A process of its own, so that nothing else in a benchmark delays it. A question is asked at its
time also while earlier ones have no answer yet, and the time in the proxy counts: it is what a
user at a browser waits. Asked in turn are the API's root and the home page of a user who has
logged in.

    with measured(hub) as times: ...
    times.figures()
"""

import argparse
import asyncio
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from benchmarks.portal.harness.http import request
from benchmarks.portal.harness.hubs import PASSWORD, Hub
from tests.instance import ROOT

INTERVAL_SECONDS = 0.05
PATHS = ("/hub/api/", "/hub/home")
_VISITOR = "watcher"


@dataclass
class AnswerTimes:
    """Milliseconds by path; filled when the measurement ends."""

    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    failures: int = 0

    def figures(self) -> dict[str, float]:
        """Return p50, p95 and the longest of all answers, in milliseconds."""
        return figures([each for times in self.milliseconds.values() for each in times])


def figures(values: list[float]) -> dict[str, float]:
    """Return p50, p95 and the largest."""
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {
        "p50": round(cuts[49], 1),
        "p95": round(cuts[94], 1),
        "max": round(max(values), 1),
    }


@contextmanager
def measured(hub: Hub) -> Iterator[AnswerTimes]:
    """Ask the hub all the time that the block takes."""
    times = AnswerTimes()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "benchmarks.portal.harness.answer_times",
            str(hub.port),
            log_in(hub, _VISITOR),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    if process.stdout is not None:
        process.stdout.readline()  # it asks now
    try:
        yield times
    finally:
        process.send_signal(signal.SIGINT)
        found = json.loads(process.communicate(timeout=120)[0])
        times.milliseconds, times.failures = found["milliseconds"], found["failures"]


def log_in(hub: Hub, user: str) -> str:
    """Log in as a user of the hub; return the header with the cookies."""
    with httpx.Client(base_url=hub.url, follow_redirects=True, timeout=60) as http:
        http.get("/hub/login")
        tokens = [cookie.value for cookie in http.cookies.jar if cookie.name == "_xsrf"]
        http.post(
            "/hub/login",
            params={"next": "/hub/home"},
            data={"username": user, "password": PASSWORD, "_xsrf": tokens[0] or ""},
        ).raise_for_status()
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in http.cookies.jar)


async def _ask_always(port: int, cookies: str) -> dict[str, object]:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stopped.set)
    milliseconds: dict[str, list[float]] = {path: [] for path in PATHS}
    failures = 0

    async def ask(path: str) -> None:
        nonlocal failures
        started = time.perf_counter()
        try:
            async with asyncio.timeout(60):
                status, _ = await request(port, "GET", path, {"Cookie": cookies})
        except (OSError, TimeoutError, EOFError):
            status = 0
        milliseconds[path].append(1000 * (time.perf_counter() - started))
        failures += status != 200

    print("asking", flush=True)
    begin = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        number = 0
        while not stopped.is_set():
            tasks.create_task(ask(PATHS[number % len(PATHS)]))
            number += 1
            pause = begin + number * INTERVAL_SECONDS - time.perf_counter()
            await asyncio.sleep(max(0.0, pause))
    return {"milliseconds": milliseconds, "failures": failures}


def main() -> None:
    """Ask until interrupted, then print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("port", type=int)
    parser.add_argument("cookies")
    given = parser.parse_args()
    print(json.dumps(asyncio.run(_ask_always(given.port, given.cookies))))


if __name__ == "__main__":
    main()
