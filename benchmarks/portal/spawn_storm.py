"""100 users press Start within one second: how soon all have a session, and how the hub does.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.spawn_storm [--rounds 3]

As root. On a private cluster of virtual nodes (`harness.virtual_cluster`), with real
hubs, real proxies, real Slurm, sudo and real Unix users; a stub stands in for JupyterLab
(`harness.hubs` says what is ours, what is upstream's, and what is fair). Each user's
browser is there too: it posts the start and reads the stream of the spawn page.

Ours and upstream's storm in turn. Of each storm: the seconds from the first press until every user
has a session, or a job that Slurm says is pending because all GPUs are taken; the hub's answer
times meanwhile (`harness.answer_times`); the CPU time of the hub's process; the programs
of Slurm that were run; jobs lost (a user without one) and doubled (a user with two).

Everything of the cluster, which would be other machines, runs on the same cores as the hub.

The last line is one JSON object. It ends with 1 where one of our storms had a failure.
"""

import argparse
import asyncio
import json
import re
import statistics
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness import http, hubs, people, virtual_cluster
from benchmarks.portal.harness.answer_times import figures, measured
from benchmarks.portal.harness.hubs import TOKEN, Hub
from benchmarks.portal.harness.virtual_cluster import VirtualCluster
from tests.waiting import until

_HEADERS = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
_MOST_SECONDS = 300
_SAYS_PENDING = re.compile("pending|queue|wait", re.IGNORECASE)


@dataclass
class Press:
    """One user's start."""

    user: str
    ready_after: float | None = None
    """Seconds after the first press."""
    said: str = ""
    """What the spawn page said last."""
    failure: str = ""


@dataclass
class Storm:
    """What one storm showed."""

    settled: float
    """Seconds until all were running or truthfully pending."""
    presses: list[Press]
    answers: dict[str, float]
    failed_answers: int
    hub_cpu: float
    programs: dict[str, int]
    jobs_of: dict[str, int] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether everybody got one job, and every page an answer: else its times are of less."""
        jobs = [self.jobs_of.get(press.user, 0) for press in self.presses]
        has_failed = any(press.failure for press in self.presses)
        return not has_failed and set(jobs) == {1} and self.failed_answers == 0

    def as_json(self) -> dict[str, Any]:
        """Return the figures."""
        ready = [press.ready_after for press in self.presses if press.ready_after is not None]
        return {
            "settled_seconds": round(self.settled, 2),
            "ready": len(ready),
            "ready_seconds": figures(ready),
            "pending": sum(press.ready_after is None for press in self.presses),
            "failed": sum(bool(press.failure) for press in self.presses),
            "lost": sum(self.jobs_of.get(press.user, 0) == 0 for press in self.presses),
            "doubled": sum(self.jobs_of.get(press.user, 0) > 1 for press in self.presses),
            "submissions": self.programs.get("sbatch", 0),
            "answer_ms": self.answers,
            "answers_failed": self.failed_answers,
            "hub_cpu_seconds": round(self.hub_cpu, 2),
            "programs": self.programs,
        }


async def _press(hub: Hub, press: Press, options: str, after: float, begin: float) -> None:
    """Do what the user's browser does, until the session is ready."""
    await asyncio.sleep(after)
    path = f"/hub/api/users/{press.user}/server"
    status, body = await http.request(hub.port, "POST", path, _HEADERS, options)
    if status not in (201, 202):
        press.failure = f"{status} {body[-300:]}"
        return
    async for line in http.lines(hub.port, f"{path}/progress", _HEADERS):
        if line.startswith("data:"):
            event = json.loads(line.removeprefix("data:"))
            press.said = event.get("message", "")
            if event.get("failed"):
                press.failure = press.said
                return
            if event.get("ready"):
                press.ready_after = time.perf_counter() - begin
                return
    press.failure = "the stream ended"


async def _storm(
    hub: Hub, cluster: VirtualCluster, presses: list[Press], gpus: int
) -> tuple[float, dict[str, int]]:
    """Let all press within a second; return when all is settled, and the users' jobs."""
    capacity = cluster.size.nodes * (cluster.size.gpus // gpus)
    expected = min(len(presses), capacity)
    options = json.dumps({"gpus": gpus} if hub.kind == "ours" else {})
    begin = time.perf_counter()
    tasks = [
        asyncio.create_task(_press(hub, press, options, number / len(presses), begin))
        for number, press in enumerate(presses)
    ]

    async def settled() -> bool:
        open_ones = [press for press in presses if press.ready_after is None]
        if len(presses) - len(open_ones) < expected - sum(bool(p.failure) for p in presses):
            return False
        if not open_ones:
            return True
        shown = await asyncio.to_thread(_jobs, cluster)
        return all(
            press.failure
            or (shown.get(press.user) == ["PENDING"] and _SAYS_PENDING.search(press.said))
            for press in open_ones
        )

    try:
        async with asyncio.timeout(_MOST_SECONDS):
            while not await settled():  # noqa: ASYNC110  # Slurm is asked, and tells nobody
                await asyncio.sleep(0.05)
    except TimeoutError:
        print(f"{hub.kind}: not settled in {_MOST_SECONDS} s", flush=True)
    seconds = time.perf_counter() - begin
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return seconds, {user: len(states) for user, states in _jobs(cluster).items()}


def _jobs(cluster: VirtualCluster) -> dict[str, list[str]]:
    """Return the states of each user's jobs that are not over."""
    jobs: dict[str, list[str]] = {}
    for line in cluster.slurm("squeue", "--noheader", "-o", "%u %T").splitlines():
        user, state = line.split()
        jobs.setdefault(user, []).append(state)
    return jobs


def storm(hub: Hub, cluster: VirtualCluster, users: list[str], gpus: int) -> Storm:
    """Run one storm, and clear it away."""
    presses = [Press(user) for user in users]
    before, cpu = hub.counts(), hubs.cpu_seconds(hub.pid)
    with measured(hub) as times:
        seconds, jobs = asyncio.run(_storm(hub, cluster, presses, gpus))
    after = hub.counts()
    found = Storm(
        seconds,
        presses,
        times.figures(),
        times.failures,
        hubs.cpu_seconds(hub.pid) - cpu,
        {name: count - before.get(name, 0) for name, count in after.items()},
        jobs,
    )
    for failure in sorted({press.failure for press in presses if press.failure})[:3]:
        print(f"{hub.kind}: a start failed: {failure}", flush=True)
    _stop_all(hub, cluster, users)
    return found


def _stop_all(hub: Hub, cluster: VirtualCluster, users: list[str]) -> None:
    async def stop(user: str, turn: asyncio.Semaphore) -> None:
        async with turn:
            await http.request(hub.port, "DELETE", f"/hub/api/users/{user}/server", _HEADERS)

    async def stop_each() -> None:
        turn = asyncio.Semaphore(10)
        await asyncio.gather(*(stop(user, turn) for user in users))

    asyncio.run(stop_each())
    until(lambda: not _jobs(cluster), seconds=180, what="all jobs have ended", every=0.5)
    with hub.api as api:
        until(
            lambda: not any(user["servers"] for user in api.get("/users").json()),
            seconds=180,
            what="all servers have stopped",
            every=1,
        )


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="storms of each kind")
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=64, help="with 4 GPUs each")
    parser.add_argument("--gpus", type=int, default=1, help="for each session")
    parser.add_argument("--kinds", nargs="+", default=list(hubs.KINDS), choices=hubs.KINDS)
    given = parser.parse_args()
    measured = commit()
    storms: dict[str, list[Storm]] = {kind: [] for kind in given.kinds}
    with ExitStack() as stack:
        size = virtual_cluster.Size(nodes=given.nodes)
        cluster = stack.enter_context(virtual_cluster.running(size))
        users = stack.enter_context(people.temporary(given.users, cluster.folder)).names
        shop = hubs.workshop(cluster, cluster.folder / "workshop")
        stack.enter_context(people.sudo_allows(shop.sudo_rules()))
        running = [
            stack.enter_context(hubs.running(kind, shop, given.gpus)) for kind in given.kinds
        ]
        for hub in running:
            hub.add_users(users)
            storm(hub, cluster, users[:2], given.gpus)
        for number in range(1, given.rounds + 1):
            for hub in running:
                found = storm(hub, cluster, users, given.gpus)
                storms[hub.kind].append(found)
                print(f"round {number} {hub.kind}: {json.dumps(found.as_json())}", flush=True)
    result = {
        "benchmark": "spawn_storm",
        "users": given.users,
        "gpus_per_session": given.gpus,
        "cluster": f"{given.nodes} real slurmds, 4 GPUs each",
        "slurm": cluster.version,
        "rounds": given.rounds,
        "median": {kind: _medians(of) for kind, of in storms.items()},
        "storms": {kind: [each.as_json() for each in of] for kind, of in storms.items()},
        **circumstances(measured),
    }
    if "ours" in storms:
        result["times_faster_than"] = {
            kind: round(
                statistics.median(
                    theirs.settled / mine.settled
                    for mine, theirs in zip(storms["ours"], of, strict=True)
                ),
                2,
            )
            for kind, of in storms.items()
            if kind != "ours"
        }
    print(json.dumps(result))
    if not all(each.is_whole for each in storms.get("ours", ())):
        sys.exit("ours: a start or an answer failed, or a user has not exactly one job")


def _medians(of: list[Storm]) -> dict[str, float]:
    return {
        "settled_seconds": round(statistics.median(each.settled for each in of), 2),
        "answer_ms_p50": statistics.median(each.answers["p50"] for each in of),
        "answer_ms_p95": statistics.median(each.answers["p95"] for each in of),
        "answer_ms_max": statistics.median(each.answers["max"] for each in of),
        "hub_cpu_seconds": round(statistics.median(each.hub_cpu for each in of), 2),
        "programs": statistics.median(sum(each.programs.values()) for each in of),
    }


if __name__ == "__main__":
    main()
