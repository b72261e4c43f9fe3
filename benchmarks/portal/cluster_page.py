"""The cluster page with 500 people who look at it at once.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.cluster_page [--viewers 500]

As root. On a private cluster of real slurmds (see `harness.virtual_cluster`) with 4 GPUs
each, most of them held by jobs. The hub and the page's service are ours as they are deployed. Each
viewer is another user and follows the page's stream through the proxy, as a browser does; one in
ten has a job of their own, so that their page differs from the others'. Every few seconds a job is
submitted or cancelled: each snapshot of the cluster differs from the last one.

Counted are the programs of Slurm that were run, by scripts in their place that write down each
execution. The delay is from the moment of a snapshot, when Slurm's answers were in, to its arrival
at a viewer; all viewers are one process on the same machine, whose work is in the figures.

The last line is one JSON object; times are milliseconds.
"""

import argparse
import asyncio
import json
import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness import http, hubs, people, virtual_cluster
from benchmarks.portal.harness.answer_times import figures
from benchmarks.portal.harness.hubs import TOKEN, Hub
from benchmarks.portal.harness.virtual_cluster import VirtualCluster
from tests.waiting import until

_PATH = "/services/cluster"
_CHANGE_SECONDS = 3.0
_AS_OF = re.compile(r'data: \{"as_of": ([\d.]+), "parts"')
_MEGABYTE = 1024
_AT_ONCE = 100


@dataclass
class Deliveries:
    """When each snapshot reached whom: milliseconds, by the snapshot's moment."""

    delays: dict[float, list[float]] = field(default_factory=dict)
    following: int = 0
    bytes_read: int = 0

    def note(self, line: str) -> None:
        """Take a line of a viewer's stream."""
        self.bytes_read += len(line)
        if match := _AS_OF.match(line):
            as_of = float(match[1])
            self.delays.setdefault(as_of, []).append((time.time() - as_of) * 1000)


async def _follow(hub: Hub, token: str, seen: Deliveries) -> None:
    headers = {"Authorization": f"token {token}"}
    is_first = True
    async for line in http.lines(hub.port, f"{_PATH}/events", headers):
        if is_first and line.startswith("data: "):
            # The snapshot that was there already.
            seen.following, is_first = seen.following + 1, False
        elif not is_first:
            seen.note(line)


async def _change(cluster: VirtualCluster, user: str) -> None:
    job_id = ""
    for is_there in cycle((False, True)):
        if is_there:
            await asyncio.to_thread(cluster.slurm, "scancel", job_id)
        else:
            job_id = (await asyncio.to_thread(_submit, cluster, user)).strip()
        await asyncio.sleep(_CHANGE_SECONDS)


def _submit(cluster: VirtualCluster, user: str) -> str:
    argv = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--gres=gpu:1", "--mem=8G"]
    return cluster.slurm(*argv, "--time=60", "--wrap=exec sleep 3000", user=user)


async def tokens(hub: Hub, names: Sequence[str]) -> dict[str, str]:
    """Make a token for each user of the hub."""
    headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
    made = {}
    for name in names:
        path = f"/hub/api/users/{name}/tokens"
        status, body = await http.request(hub.port, "POST", path, headers, '{"note": "bench"}')
        if status != 201:
            raise RuntimeError(f"{path}: {status} {body[-300:]}")
        made[name] = json.loads(body)["token"]
    return made


def service(hub: Hub) -> int:
    """Return the number of the service's process."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if b"dsportal.cluster" in words and int(parent) == hub.pid:
            return int(process.name)
    raise RuntimeError("the hub has no process of the cluster page")


def most_memory_mb(pid: int) -> float:
    """Return the most memory that a process has had."""
    (line,) = (
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmHWM" in line
    )
    return round(int(line.split()[1]) / _MEGABYTE, 1)


async def _measure(
    hub: Hub, cluster: VirtualCluster, tokens: dict[str, str], owner: str, seconds: float
) -> dict[str, object]:
    seen, pid = Deliveries(), service(hub)
    viewers: list[asyncio.Task[None]] = []
    # Of more than 256 at once, whom the hub has not confirmed yet, the oldest would be let go.
    waiting = list(tokens.values())
    for first in range(0, len(waiting), _AT_ONCE):
        some = waiting[first : first + _AT_ONCE]
        viewers += [asyncio.create_task(_follow(hub, token, seen)) for token in some]
        while seen.following < len(viewers):
            for viewer in viewers:
                if viewer.done():
                    viewer.result()
                    raise RuntimeError("a stream has ended")
            await asyncio.sleep(0.1)
    print(f"{seen.following} viewers follow", flush=True)
    changing = asyncio.create_task(_change(cluster, owner))
    before, cpu, began = hub.counts(), hubs.cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(seconds)
    # Pictures that all have got: the last one may be on its way.
    snapshots = {as_of: all_ for as_of, all_ in seen.delays.items() if len(all_) == len(viewers)}
    took = time.monotonic() - began
    result: dict[str, object] = {
        "snapshots": len(snapshots),
        "pictures_not_with_all": len(seen.delays) - len(snapshots),
        "commands_run": {
            name: count - before.get(name, 0)
            for name, count in hub.counts().items()
            if count > before.get(name, 0)
        },
        "seconds": round(took, 1),
        "delay_of_all_deliveries": figures([one for all_ in snapshots.values() for one in all_]),
        "delay_of_the_last_viewer": figures([max(all_) for all_ in snapshots.values()]),
        "service_cpu_percent": round(100 * (hubs.cpu_seconds(pid) - cpu) / took, 1),
        "service_memory_mb": most_memory_mb(pid),
        "kilobytes_per_viewer_and_picture": round(
            seen.bytes_read / 1024 / len(viewers) / max(1, len(seen.delays)), 2
        ),
    }
    for task in (*viewers, changing):
        task.cancel()
    await asyncio.gather(*viewers, changing, return_exceptions=True)
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--viewers", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args(arguments)
    measured = commit()
    with ExitStack() as stack:
        size = virtual_cluster.Size(nodes=given.nodes)
        cluster = stack.enter_context(virtual_cluster.running(size))
        owners = stack.enter_context(
            people.temporary(given.viewers // 10 + 1, cluster.folder)
        ).names
        for owner in owners[1:] * 3:
            _submit(cluster, owner)
        shop = hubs.workshop(cluster, cluster.folder / "workshop")
        stack.enter_context(people.sudo_allows(shop.sudo_rules()))
        hub = stack.enter_context(hubs.running("ours", shop))
        names = [*owners[1:], *(f"viewer{number}" for number in range(given.viewers))]
        names = names[: given.viewers]
        hub.add_users(names)
        shown_to = asyncio.run(tokens(hub, names))
        until(lambda: answers(hub, shown_to[names[0]]), seconds=60, what="the page answers")
        result = asyncio.run(_measure(hub, cluster, shown_to, owners[0], given.seconds))
    print(
        json.dumps(
            {
                "benchmark": "cluster_page",
                "viewers": given.viewers,
                "interval_seconds": 10.0,
                **result,
                "cluster": f"{given.nodes} real slurmds, 4 GPUs each, 2 partitions",
                "slurm": cluster.version,
                **circumstances(measured),
            }
        )
    )


def answers(hub: Hub, token: str) -> bool:
    """Say whether the service has a picture of the cluster."""
    headers = {"Authorization": f"token {token}"}
    status, _ = asyncio.run(http.request(hub.port, "GET", f"{_PATH}/api/v1/cluster", headers))
    return status == 200


if __name__ == "__main__":
    main()
