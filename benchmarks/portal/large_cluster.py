"""How long the form and the cluster page take on a cluster of 5,000 nodes with 20,000 jobs.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.large_cluster [--nodes 5000] [--jobs 20000]
        [--minutes 0]

As root. No machine runs 5,000 slurmds beside a hub: here ``scontrol show node`` and ``squeue`` are
stand-ins that print generated answers in the form of Slurm 22.05's, three quarters of the GPUs
taken, a quarter of the jobs waiting. So what a slurmctld of that size takes is not in the figures;
what the portal does with its answers is. All else is real, on a cluster of three slurmds: see
`benchmarks.portal.options_page`, whose questions are asked here. In the end the cluster's API is
asked again and again, and each process' memory is read: its most, and after ``--minutes`` more of
such questions also its course and how much it grows in an hour, with a 95 % confidence interval
(`benchmarks.portal.harness.trend`, which needs half an hour).

The last line is one JSON object; times are milliseconds.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import psutil

from benchmarks.commit import circumstances, commit
from benchmarks.portal import cluster_page
from benchmarks.portal.harness import hubs, people, virtual_cluster
from benchmarks.portal.harness.answer_times import figures, log_in
from benchmarks.portal.harness.http import request
from benchmarks.portal.harness.hubs import Hub, Workshop
from benchmarks.portal.harness.trend import trend
from benchmarks.portal.options_page import measure
from jupyterhub_gpu_slurm.outlook.availability import AvailabilityCounter
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.slurm import parsing, queue
from tests.waiting import until

_PEOPLE = 20
_MEGABYTE = 1024 * 1024
_GPUS = 4
_NODE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=20  CPUAlloc={cores} CPUEfctv=40 CPUTot=40"
    " CPULoad=1.10 AvailableFeatures=(null) ActiveFeatures=(null) Gres=gpu:v100:4 GresDrain=N/A"
    " GresUsed=gpu:v100:{gpus}(IDX:{indices}) NodeAddr={name} NodeHostName={name} Port=6818"
    " Version=22.05.8 OS=Linux 6.1.0-13-amd64 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=393216"
    " AllocMem={memory} FreeMem=12189 Sockets=2 Boards=1 State={state} ThreadsPerCore=1 TmpDisk=0"
    " Weight=1 Owner=N/A MCS_label=N/A Partitions=sxm2,shareq  BootTime=2026-11-20T21:55:29"
    " SlurmdStartTime=2026-11-21T02:56:02 LastBusyTime=2026-11-21T02:56:02"
    " CfgTRES=cpu=40,mem=384G,billing=40 AllocTRES=cpu={cores},mem={memory}M CapWatts=n/a"
    " CurrentWatts=0 AveWatts=0 ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s"
)
_WORD = "@WORD@"
_SCONTROL = """\
#!/bin/dash
echo scontrol >> {executions}
case "$*" in *"show node"*) exec /bin/cat {folder}/nodes;; esac
exec /usr/bin/scontrol "$@"
"""
_SQUEUE = """\
#!/bin/bash
echo squeue >> {executions}
if [[ "${{SQUEUE_FORMAT2:-}}" =~ ^JobID:\\|([^|]*)\\| ]]; then
    exec /bin/sed "s/{word}/${{BASH_REMATCH[1]}}/" {folder}/jobs
fi
exec /usr/bin/squeue "$@"
"""


def node_lines(count: int) -> Iterator[str]:
    """Generate the answer of ``scontrol show node``: three quarters of all GPUs are taken."""
    for number in range(count):
        gpus = (4, 4, 3, 1)[number % 4]
        yield _NODE.format(
            name=f"node{number + 1:05}",
            gpus=gpus,
            indices=f"0-{gpus - 1}" if gpus > 1 else "0",
            cores=8 * gpus,
            memory=49152 * gpus,
            state="ALLOCATED" if gpus == _GPUS else "MIXED",
        )


def job_lines(count: int, nodes: int) -> Iterator[str]:
    """Generate the answer of ``squeue``, with `_WORD` in the place of the question's own."""
    for number in range(count):
        job_id, is_waiting = 100_000 + number, number % 4 == 3
        user = f"user{number % 1000:04}"
        node = "" if is_waiting else f"node{number % nodes + 1:05}"
        fields = (
            *(job_id, _WORD, job_id, "PENDING" if is_waiting else "RUNNING", user, "sxm2", 1, 1),
            *("gres:gpu:v100:1", "N/A", "N/A", "2026-11-25T08:00:00"),
            *(("N/A", "N/A") if is_waiting else ("2026-11-25T08:00:01", "2026-11-25T20:00:01")),
            *(node, "Priority" if is_waiting else "None", f"training-{number}"),
        )
        yield "|".join(map(str, fields))


def reading_seconds(nodes: int, jobs: int) -> dict[str, float]:
    """Return the processor time in which the portal's code reads and counts such answers."""
    word = "0" * 16
    partition = "PartitionName={} AllowGroups=ALL MaxTime=12:00:00 State=UP"
    told = "\n".join(map(partition.format, ("sxm2", "shareq")))
    shown, listed = "\n".join(node_lines(nodes)), "\n".join(job_lines(jobs, nodes))
    listed = listed.replace(_WORD, word)
    begun = time.process_time()
    cluster = parsing.cluster(parsing.nodes(shown), parsing.partitions(told))
    read_nodes = time.process_time()
    queue.jobs(listed, word)
    read_jobs = time.process_time()
    AvailabilityCounter(ResourceShape()).of(cluster)
    return {
        "nodes": round(read_nodes - begun, 3),
        "jobs": round(read_jobs - read_nodes, 3),
        "what_is_free": round(time.process_time() - read_jobs, 3),
    }


def _generate(shop: Workshop, nodes: int, jobs: int) -> None:
    """Put the stand-ins in the place of what the hub runs."""
    folder = shop.folder / "generated"
    folder.mkdir(mode=0o755)
    (folder / "nodes").write_text("".join(f"{line}\n" for line in node_lines(nodes)))
    (folder / "jobs").write_text("".join(f"{line}\n" for line in job_lines(jobs, nodes)))
    programs = shop.programs("ours")
    words = {"executions": programs.parent / "executions", "folder": folder, "word": _WORD}
    (programs / "scontrol").write_text(_SCONTROL.format(**words))
    (programs / "squeue").write_text(_SQUEUE.format(**words))


async def _ask_cluster(hub: Hub, token: str, asks: int) -> dict[str, list[float]]:
    """Ask for the nodes and the jobs, as the cluster page does."""
    found: dict[str, list[float]] = {}
    for what in ("cluster", "jobs"):
        for _ in range(asks):
            started = time.perf_counter()
            status, _ = await request(
                hub.port,
                "GET",
                f"/services/cluster/api/v1/{what}",
                {"Authorization": f"token {token}"},
            )
            if status != 200:
                raise RuntimeError(f"{what} answered {status}")
            found.setdefault(what, []).append(1000 * (time.perf_counter() - started))
            await asyncio.sleep(0.25)
    return found


async def _memory(
    hub: Hub,
    cookies: Mapping[str, str],
    token: str,
    minutes: float,
    processes: Mapping[str, psutil.Process],
) -> dict[str, object]:
    """Go on asking; return of each process the most memory it had, and with minutes its growth."""
    began = time.monotonic()
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in processes}
    while (at := time.monotonic() - began) < 60 * minutes:
        for name, process in processes.items():
            samples[name].append((at, process.memory_info().rss / _MEGABYTE))
        await measure(hub, dict(cookies), 1, "sxm2", ("form", "availability"))
        await _ask_cluster(hub, token, 1)
    found: dict[str, object] = {}
    for name, points in samples.items():
        growth = trend({name: points})
        found[name] = {
            "most_mb": cluster_page.most_memory_mb(processes[name].pid),
            "mb_every_minute": [
                round(value) for number, (_, value) in enumerate(points) if _starts(points, number)
            ],
            "mb_per_hour": growth and asdict(growth),
        }
    return found


def _starts(points: Sequence[tuple[float, float]], number: int) -> bool:
    """Whether this is the first sample of its minute."""
    return number == 0 or points[number][0] // 60 > points[number - 1][0] // 60


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--asks", type=int, default=400, help="of each kind")
    parser.add_argument("--minutes", type=float, default=0, help="of asking, to watch the memory")
    parser.add_argument(
        "--only-reading", action="store_true", help="processor time of the portal's code alone"
    )
    given = parser.parse_args(arguments)
    measured = commit()
    reading = reading_seconds(given.nodes, given.jobs)
    if given.only_reading:
        print(json.dumps({"benchmark": "large_cluster", "reading_cpu_seconds": reading}))
        return
    with ExitStack() as stack:
        cluster = stack.enter_context(virtual_cluster.running(virtual_cluster.Size(nodes=3)))
        users = stack.enter_context(people.temporary(_PEOPLE, cluster.folder)).names
        shop = hubs.workshop(cluster, cluster.folder / "workshop")
        _generate(shop, given.nodes, given.jobs)
        stack.enter_context(people.sudo_allows(shop.sudo_rules()))
        hub = stack.enter_context(hubs.running("ours", shop))
        hub.add_users(users)
        cookies = {name: log_in(hub, name) for name in users}
        kinds = ("form", "forms_at_once", "availability")
        times = asyncio.run(measure(hub, cookies, given.asks, "sxm2", kinds))
        tokens = asyncio.run(cluster_page.tokens(hub, users[:1]))
        token = tokens[users[0]]
        until(lambda: cluster_page.answers(hub, token), seconds=60, what="the page answers")
        times |= asyncio.run(_ask_cluster(hub, token, given.asks // 4))
        processes = {
            "hub": psutil.Process(hub.pid),
            "cluster_service": psutil.Process(cluster_page.service(hub)),
        }
        memory = asyncio.run(_memory(hub, cookies, token, given.minutes, processes))
        sizes = {
            name: Path(shop.folder, "generated", name).stat().st_size for name in ("nodes", "jobs")
        }
    print(
        json.dumps(
            {
                "benchmark": "large_cluster",
                "milliseconds": {
                    what: {**figures(values), "count": len(values)}
                    for what, values in times.items()
                },
                "reading_cpu_seconds": reading,
                "goal": "p95 of form under 150 ms",
                "memory": memory,
                "answers_bytes": sizes,
                "cluster": f"generated: {given.nodes} nodes, {given.jobs} jobs",
                "load": round(os.getloadavg()[0], 1),
                **circumstances(measured),
            }
        )
    )


if __name__ == "__main__":
    main()
