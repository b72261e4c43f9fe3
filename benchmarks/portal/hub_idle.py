"""What the hub and its services take while 200 sessions run and nobody does anything.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.hub_idle [--sessions 200] [--minutes 5]

As root. On a private cluster (`harness.virtual_cluster`) with our hub as it is deployed
and real Unix users; the stub stands in for JupyterLab (`harness.hubs`). When all sessions
run, and a while later, the processor time of each process is read, and again after the minutes
given. So other work on the machine does not change the figure much. Memory is the proportional set
size, in which what processes share counts once. The proxy is not in the figures. First the same is
measured without a session.

The last line is one JSON object; shares are percent of one core.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.commit import circumstances, commit
from benchmarks.portal import slurm_load
from benchmarks.portal.harness import hubs, people, virtual_cluster
from benchmarks.portal.harness.hubs import Hub
from tests.waiting import until

_SETTLE_SECONDS = 30.0


def _processes(hub: Hub) -> dict[str, int]:
    """Return the hub and the services that it runs, by name."""
    found = {"hub": hub.pid}
    children = Path(f"/proc/{hub.pid}/task/{hub.pid}/children").read_text().split()
    for number in children:
        words = Path(f"/proc/{number}/cmdline").read_bytes().decode().split("\0")
        if "-m" in words:
            found[words[words.index("-m") + 1].rpartition(".")[2]] = int(number)
    return found


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    # With what the children used that have ended: Slurm's programs are run by these.
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("Pss:"))
    return round(int(line.split()[1]) / 1024, 1)


def _measure(hub: Hub, minutes: float) -> dict[str, dict[str, float]]:
    time.sleep(_SETTLE_SECONDS)
    processes = _processes(hub)
    before = {name: _cpu_seconds(pid) for name, pid in processes.items()}
    began = time.monotonic()
    time.sleep(60 * minutes)
    took = time.monotonic() - began
    share = {
        name: round(100 * (_cpu_seconds(pid) - before[name]) / took, 2)
        for name, pid in processes.items()
    }
    memory = {name: _memory_mb(pid) for name, pid in processes.items()}
    return {
        "cpu_percent": {**share, "all": round(sum(share.values()), 2)},
        "memory_mb": {**memory, "all": round(sum(memory.values()), 1)},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=64, help="with 4 GPUs each")
    parser.add_argument("--minutes", type=float, default=5.0, help="of counting, each time")
    given = parser.parse_args(arguments)
    measured = commit()
    with ExitStack() as stack:
        size = virtual_cluster.Size(nodes=given.nodes)
        cluster = stack.enter_context(virtual_cluster.running(size))
        users = stack.enter_context(people.temporary(given.sessions, cluster.folder)).names
        shop = hubs.workshop(cluster, cluster.folder / "workshop")
        stack.enter_context(people.sudo_allows(shop.sudo_rules()))
        hub = stack.enter_context(hubs.running("ours", shop))
        hub.add_users(users)
        found = {"without": _measure(hub, given.minutes)}
        print(f"without sessions: {json.dumps(found['without'])}", flush=True)
        asyncio.run(slurm_load.start(hub, users))
        until(
            lambda: slurm_load.are_ready(hub, len(users)),
            seconds=600,
            every=2,
            what="all sessions are ready",
        )
        found["with_sessions"] = _measure(hub, given.minutes)
    print(
        json.dumps(
            {
                "benchmark": "hub_idle",
                "sessions": given.sessions,
                "minutes_counted": given.minutes,
                **found,
                "goal": "2 % of a core and 250 MB for hub and services together",
                "cluster": f"{given.nodes} real slurmds, 4 GPUs each",
                "slurm": cluster.version,
                "load": round(os.getloadavg()[0], 1),
                **circumstances(measured),
            }
        )
    )


if __name__ == "__main__":
    main()
