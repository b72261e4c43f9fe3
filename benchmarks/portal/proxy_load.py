"""What notebooks cost the two processes that all their traffic passes: the proxy and its front.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.proxy_load [--notebooks 10 50 ...]

As root, with ``PORTAL_TEST_KEEP=1`` on the portal of the tests where it runs. The processor time of
configurable-http-proxy and of nginx is read before and after each of:

- *pages*: JupyterLab in Chromium, a new profile each time, until its launcher has the focus; then
  its launcher for a minute; then, for a minute, a notebook whose cell shows something new ten times
  a second, as often as tqdm renews a bar of progress. The browser's requests and messages count;
- *notebooks*: so many websockets of a real session's kernel, to each of which goes every message of
  such a cell; how late each arrives is told, too. What a message costs is the rise from the fewest
  to the most. The session and who reads the messages work on the same cores, so that the machine is
  full long before the proxy is;
- *connections*: as many websockets on which nobody says anything;
- *requests*: small ones of the session, eight at a time, on connections that stay open;
- *download*: a large file.

The last line is one JSON object: processor time of both processes, and an estimate of
how many pages of each kind one core of each carries, from what a page sends and what that costs.
"""

import argparse
import asyncio
import json
import os
import statistics
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
from playwright.sync_api import Page, Request, WebSocket, sync_playwright
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness.answer_times import figures
from benchmarks.portal.harness.hubs import cpu_seconds
from tests import faults, instance
from tests.browser.chromium import launch
from tests.browser.lab import open_lab
from tests.instance import USERS, Instance, trust
from tests.visitor import Visitor, session_of

USER = USERS[0]
PARTS = ("proxy", "front")
UPDATES_PER_SECOND = 10
"""tqdm's ``mininterval`` is 0.1 s."""
_CELL = """
import time
from IPython.display import display
handle = display({{"text/plain": ""}}, raw=True, display_id=True)
begun, number = time.monotonic(), 0
while (since := time.monotonic() - begun) < {seconds}:
    words = f"sent {{time.time():.6f}} " + "#" * 400
    handle.update({{"text/plain": words}}, raw=True)
    number += 1
    time.sleep(max(0, number / {rate} - since))
"""
_SETTLE_SECONDS = 3
_WORKERS = 8
_DOWNLOAD_MB = 512
_FILE = "proxy-load.bin"
_FILL = f"open({_FILE!r}, 'wb').write(__import__('os').urandom({_DOWNLOAD_MB} << 20)); None"
_EMPTY = f"import os; os.remove({_FILE!r})"


@dataclass
class Cost:
    """What a block took from each part."""

    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)

    def percent(self) -> dict[str, float]:
        """Return the shares of one core."""
        return {name: round(100 * cpu / self.seconds, 2) for name, cpu in self.cpu.items()}

    def per(self, count: float, unit: float) -> dict[str, float]:
        """Return what one of so many cost, in such fractions of a second."""
        return {name: round(cpu / count / unit, 1) for name, cpu in self.cpu.items()}


@contextmanager
def counted(pids: Mapping[str, int]) -> Iterator[Cost]:
    """Read the processor time of these processes before and after the block."""
    cost = Cost()
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    began = time.monotonic()
    yield cost
    cost.seconds = time.monotonic() - began
    cost.cpu = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}


# --- one page in a browser ---


@dataclass
class Traffic:
    """What one page sends and gets."""

    requests: int = 0
    messages: int = 0
    kilobytes: float = 0.0

    def watch(self, page: Page) -> None:
        """Count from now on."""
        page.on("request", self._requested)
        page.on("websocket", self._opened)

    def _requested(self, _request: Request) -> None:
        self.requests += 1

    def _opened(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._passed)
        socket.on("framesent", self._passed)

    def _passed(self, message: str | bytes) -> None:
        self.messages += 1
        self.kilobytes += len(message) / 1000

    def since(self, earlier: "Traffic") -> dict[str, float]:
        """Return what came after an earlier count."""
        return {
            "requests": self.requests - earlier.requests,
            "messages": self.messages - earlier.messages,
            "message_kilobytes": round(self.kilobytes - earlier.kilobytes, 1),
        }


def pages(
    portal: Instance, pids: Mapping[str, int], opened: int, seconds: int
) -> dict[str, dict[str, object]]:
    """Open JupyterLab so often; then have it idle, and busy."""
    costs, requests = [], []
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for number in range(opened):
            page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
            traffic = Traffic()
            traffic.watch(page)
            with counted(pids) as cost:
                open_lab(page, portal, USER)
            costs.append(cost)
            requests.append(traffic.requests)
            if number < opened - 1:
                page.context.close()
        minutes: dict[str, dict[str, object]] = {"idle": _minute(page, traffic, pids, seconds)}
        page.locator(".jp-LauncherCard:visible", has_text="Python 3").first.click()
        page.locator(".jp-Notebook:visible .cm-content").click()
        code = _CELL.format(seconds=seconds + 2 * _SETTLE_SECONDS, rate=UPDATES_PER_SECOND)
        page.keyboard.insert_text(f"exec({code!r})")
        page.keyboard.press("Control+Enter")
        page.locator(".jp-OutputArea-output", has_text="sent").wait_for()
        minutes["busy"] = _minute(page, traffic, pids, seconds)
        browser.close()
    cpu = {name: statistics.median(cost.cpu[name] for cost in costs) for name in PARTS}
    return {
        "opened": {
            "requests": statistics.median(requests),
            "cpu_ms": {name: round(1000 * value) for name, value in cpu.items()},
        },
        **minutes,
    }


def _minute(
    page: Page, traffic: Traffic, pids: Mapping[str, int], seconds: int
) -> dict[str, object]:
    page.wait_for_timeout(1000 * _SETTLE_SECONDS)
    earlier = replace(traffic)
    with counted(pids) as cost:
        page.wait_for_timeout(1000 * seconds)
    return {"seconds": seconds, **traffic.since(earlier), "cpu_percent": cost.percent()}


# --- many at once ---


def _cookies(user: Visitor) -> str:
    """Return the header that a browser which is logged in sends to the session."""
    return user.http.build_request("GET", f"{user.session_url}/api").headers["cookie"]


@asynccontextmanager
async def _sockets(user: Visitor, path: str, count: int) -> AsyncIterator[list[ClientConnection]]:
    address = f"{user.session_url}{path}".replace("http", "ws", 1)
    tls = trust() if address.startswith("wss:") else None
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(count):
            one = connect(
                address,
                additional_headers={"Cookie": _cookies(user)},
                origin=user.instance.host_of(user.name),  # type: ignore[arg-type]
                open_timeout=60,
                ssl=tls,
            )
            opened.append(await stack.enter_async_context(one))
        yield opened


@dataclass
class MessageArrivals:
    """What readers of a kernel's messages have got."""

    is_counting: bool = False
    count: int = 0
    size: int = 0
    late_ms: list[float] = field(default_factory=list)

    async def read(self, socket: ClientConnection) -> None:
        """Read one websocket until cancelled."""
        async for message in socket:
            now = time.time()
            words = message if isinstance(message, str) else message.decode(errors="replace")
            place = words.find('"sent ')
            if not self.is_counting or place < 0:
                continue
            self.count += 1
            self.size += len(message)
            self.late_ms.append(1000 * (now - float(words[place + 6 :].split(" ", 1)[0])))


async def notebooks(
    user: Visitor, pids: Mapping[str, int], kernel: str, count: int, seconds: int
) -> tuple[Cost, MessageArrivals]:
    """Have so many readers of a kernel that shows something new all the time."""
    arrivals = MessageArrivals()
    code = _CELL.format(seconds=seconds + 2 * _SETTLE_SECONDS, rate=UPDATES_PER_SECOND)
    channels = f"/api/kernels/{kernel}/channels"
    async with _sockets(user, channels, count) as sockets, asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(arrivals.read(each)) for each in sockets]
        running = threading.Thread(target=user.run_in, args=(kernel, code))
        running.start()
        await asyncio.sleep(_SETTLE_SECONDS)
        with counted(pids) as cost:
            arrivals.is_counting = True
            await asyncio.sleep(seconds)
            arrivals.is_counting = False
        await asyncio.to_thread(running.join)
        for reader in readers:
            reader.cancel()
    return cost, arrivals


async def connections(
    user: Visitor, pids: Mapping[str, int], count: int, seconds: int
) -> dict[str, object]:
    """Have so many websockets on which nothing is said."""
    with counted(pids) as none:
        await asyncio.sleep(seconds)
    async with _sockets(user, "/api/events/subscribe", count):
        await asyncio.sleep(_SETTLE_SECONDS)
        with counted(pids) as cost:
            await asyncio.sleep(seconds)
    return {
        "count": count,
        "cpu_percent": cost.percent(),
        "cpu_percent_without": none.percent(),
    }


async def requests(user: Visitor, pids: Mapping[str, int], seconds: int) -> dict[str, object]:
    """Ask the session small questions, several at a time."""
    count = 0
    until = time.monotonic() + seconds
    async with httpx.AsyncClient(verify=trust(), headers={"Cookie": _cookies(user)}) as client:

        async def ask() -> None:
            nonlocal count
            while time.monotonic() < until:
                (await client.get(f"{user.session_url}/api/kernels")).raise_for_status()
                count += 1

        with counted(pids) as cost:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(_WORKERS):
                    tasks.create_task(ask())
    return {"per_second": round(count / cost.seconds), "cpu_us_each": cost.per(count, 1e-6)}


def download(user: Visitor, pids: Mapping[str, int]) -> dict[str, object]:
    """Get a large file."""
    user.run(_FILL)
    try:
        with counted(pids) as cost:
            size = 0
            with user.http.stream("GET", f"{user.session_url}/files/{_FILE}") as answer:
                answer.raise_for_status()
                for part in answer.iter_raw():
                    size += len(part)
    finally:
        user.run(_EMPTY)
    return {
        "megabytes_per_second": round(size / 1e6 / cost.seconds),
        "cpu_ms_per_gigabyte": {name: round(1e12 * cpu / size) for name, cpu in cost.cpu.items()},
    }


# --- the whole ---


def measure(portal: Instance, levels: Sequence[int], seconds: int, opened: int) -> dict[str, Any]:
    """Measure all of it."""
    pids = {name: faults.pid_of(name) for name in PARTS}
    with session_of(portal, USER) as user:
        found: dict[str, Any] = {"pages": pages(portal, pids, opened, seconds)}
        print(f"pages: {json.dumps(found['pages'])}", flush=True)
        user.http.get(f"{user.session_url}/lab").raise_for_status()
        kernel = user.open_kernel()
        series = []
        for count in levels:
            cost, arrivals = asyncio.run(notebooks(user, pids, kernel, count, seconds))
            level = {
                "notebooks": count,
                "messages_per_second": round(arrivals.count / cost.seconds, 1),
                "bytes_each": round(arrivals.size / arrivals.count),
                "late_ms": figures(arrivals.late_ms),
                "cpu_percent": cost.percent(),
            }
            print(f"notebooks: {json.dumps(level)}", flush=True)
            series.append((level, cost, arrivals.count))
        found["notebooks"] = [level for level, _, _ in series]
        (_, fewest, few), (_, most, many) = series[0], series[-1]
        rise = {name: most.cpu[name] - fewest.cpu[name] for name in PARTS}
        found["message_us"] = Cost(0, rise).per(many - few, 1e-6)
        found["connections"] = asyncio.run(connections(user, pids, max(levels), seconds))
        print(f"connections: {json.dumps(found['connections'])}", flush=True)
        found["requests"] = asyncio.run(requests(user, pids, seconds))
        found["download"] = download(user, pids)
    return found


def carried(page: Mapping[str, Any], message: float, request: float) -> int:
    """Return how many such pages one core carries, by microseconds for each of what they send."""
    each = page["requests"] * request + page["messages"] * message
    return int(page["seconds"] * 1e6 / each)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="of counting, each time")
    parser.add_argument("--notebooks", type=int, nargs="+", default=[10, 25, 50, 100])
    parser.add_argument("--opened", type=int, default=5, help="pages that are opened")
    given = parser.parse_args(arguments)
    measured = commit()
    with instance.running() as portal:
        found = measure(portal, given.notebooks, given.seconds, given.opened)
    estimate = {
        kind: {
            name: carried(found["pages"][kind], found["message_us"][name], us)
            for name, us in found["requests"]["cpu_us_each"].items()
        }
        for kind in ("idle", "busy")
    }
    print(
        json.dumps(
            {
                "benchmark": "proxy_load",
                "updates_per_second": UPDATES_PER_SECOND,
                "seconds_counted": given.seconds,
                **found,
                "estimate_pages_per_core": estimate,
                "load": round(os.getloadavg()[0], 1),
                **circumstances(measured),
            }
        )
    )


if __name__ == "__main__":
    main()
