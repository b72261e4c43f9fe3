"""How many commands are run against Slurm in a minute, with 1, 10 and 100 live sessions.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.slurm_load [--minutes 2]

As root. On the same private cluster as `benchmarks.portal.spawn_storm`, with the same hubs, ours
and upstream's at the same time. Nothing is estimated: both hubs, and the launcher, run Slurm's
programs through scripts that write down each execution. After the sessions are ready, and quiet for
a while, executions are counted for some minutes in which nothing starts or ends. Then, with the
100 sessions still live, 50 people look at the form, and their browsers do what the form's script
does: every ten seconds they ask what is free, and every minute, since nothing changes, when the
size that is chosen would start. Upstream has no form (one would have to be written), so its 50
people look at the home page.

The last line is one JSON object.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness import http, hubs, people, virtual_cluster
from benchmarks.portal.harness.answer_times import log_in
from benchmarks.portal.harness.hubs import TOKEN, Hub
from tests.waiting import until

KINDS = ("ours", "upstream")
_SESSIONS = (1, 10, 100)
_HEADERS = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
_REFRESH_SECONDS = 10.0
_LOOKS_PER_FORECAST = 6
"""As the form's script does."""
_SETTLE_SECONDS = 20.0


async def start(hub: Hub, users: list[str]) -> None:
    """Start a session for each user, a few at a time."""
    turn = asyncio.Semaphore(5)

    async def start_one(user: str) -> None:
        async with turn:
            path = f"/hub/api/users/{user}/server"
            status, body = await http.request(hub.port, "POST", path, _HEADERS, "{}")
            if status not in (201, 202):
                raise RuntimeError(f"{hub.kind}: {status} {body[-500:]}")

    await asyncio.gather(*(start_one(user) for user in users))


def are_ready(hub: Hub, count: int) -> bool:
    """Say whether so many sessions are there, and all of them ready."""
    with hub.api as api:
        servers = [server for user in api.get("/users").json() for server in user["servers"]]
        ready = api.get("/users", params={"state": "ready"}).json()
    return len(servers) == len(ready) == count


async def _view(hub: Hub, viewers: dict[str, str], seconds: float) -> None:
    """Let people look at the form, at different moments; ``viewers`` are names and cookies."""
    end = time.monotonic() + seconds

    async def get(path: str, headers: dict[str, str]) -> None:
        status, body = await http.request(hub.port, "GET", path, headers)
        if status != 200:
            raise RuntimeError(f"{hub.kind}: {path} answered {status}: {body[-500:]}")

    async def look(number: int, name: str, cookies: str) -> None:
        await asyncio.sleep(number * _REFRESH_SECONDS / len(viewers))
        await get("/hub/spawn" if hub.kind == "ours" else "/hub/home", {"Cookie": cookies})
        # The first forecasts are not those of people who have just come: they are spread out.
        looks = number
        while time.monotonic() < end:
            if hub.kind == "ours":
                api = "/hub/api/gpu-session"
                await get(f"{api}/availability/{name}", _HEADERS)
                if looks % _LOOKS_PER_FORECAST == 0:
                    await get(f"{api}/forecast/{name}?gpus=1&hours=8&partition=sxm2", _HEADERS)
            looks += 1
            # What the hubs do afterwards is not counted.
            await asyncio.sleep(min(_REFRESH_SECONDS, max(0.0, end - time.monotonic())))

    await asyncio.gather(
        *(look(number, name, cookies) for number, (name, cookies) in enumerate(viewers.items()))
    )


def _per_minute(before: dict[str, int], after: dict[str, int], minutes: float) -> dict[str, float]:
    found = {
        name: round((count - before.get(name, 0)) / minutes, 1) for name, count in after.items()
    }
    return {name: rate for name, rate in found.items() if rate} | {
        "all": round((sum(after.values()) - sum(before.values())) / minutes, 1)
    }


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=2.0, help="of counting, each time")
    parser.add_argument("--nodes", type=int, default=64, help="with 4 GPUs each")
    parser.add_argument("--viewers", type=int, default=50)
    given = parser.parse_args()
    measured = commit()
    most = max(_SESSIONS)
    rates: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    with ExitStack() as stack:
        size = virtual_cluster.Size(nodes=given.nodes)
        cluster = stack.enter_context(virtual_cluster.running(size))
        users = stack.enter_context(people.temporary(most + given.viewers, cluster.folder)).names
        viewers, users = users[most:], users[:most]
        shop = hubs.workshop(cluster, cluster.folder / "workshop")
        stack.enter_context(people.sudo_allows(shop.sudo_rules()))
        running = [stack.enter_context(hubs.running(kind, shop)) for kind in KINDS]
        for hub in running:
            hub.add_users([*users, *viewers])

        def count(what: str, viewers: Sequence[str] = ()) -> None:
            cookies = {hub.port: {name: log_in(hub, name) for name in viewers} for hub in running}
            time.sleep(_SETTLE_SECONDS)
            before = [hub.counts() for hub in running]
            seconds = 60 * given.minutes
            if viewers:
                asyncio.run(_view_all(running, cookies, seconds))
            else:
                time.sleep(seconds)
            for hub, then in zip(running, before, strict=True):
                rates[hub.kind][what] = _per_minute(then, hub.counts(), given.minutes)
                print(f"{what}, {hub.kind}: {rates[hub.kind][what]} a minute", flush=True)

        live = 0
        for sessions in _SESSIONS:
            for hub in running:
                asyncio.run(start(hub, users[live:sessions]))
                until(
                    lambda hub=hub, sessions=sessions: are_ready(hub, sessions),  # type: ignore[misc]
                    seconds=300,
                    every=2,
                    what=f"{sessions} sessions are ready",
                )
            live = sessions
            count(f"{sessions} sessions")
        count(f"{live} sessions, {given.viewers} viewers of the form", viewers)
    print(
        json.dumps(
            {
                "benchmark": "slurm_load",
                "commands_per_minute": rates,
                "minutes_counted": given.minutes,
                "cluster": f"{given.nodes} real slurmds, 4 GPUs each",
                "slurm": cluster.version,
                **circumstances(measured),
            }
        )
    )


async def _view_all(running: list[Hub], cookies: dict[int, dict[str, str]], seconds: float) -> None:
    await asyncio.gather(*(_view(hub, cookies[hub.port], seconds) for hub in running))


if __name__ == "__main__":
    main()
