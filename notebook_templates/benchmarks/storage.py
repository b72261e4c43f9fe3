#!/usr/bin/env python
"""Measure storage alone with fio, from one client to all nodes of a job at once.

    python storage.py --results run1 --mounts /mnt/isilon1,/mnt/isilon2       this machine alone
    sbatch --nodes=4 --wrap 'python3 storage.py --results run1 --mounts ...'  1, 2 and 4 clients

It writes only into a folder of its own below each mount, which it removes at the end, also when it
is ended before. Each mount is measured alone, and several in turn: a process uses mount number
modulo mounts. In RESULTS stay summary.json, what fio itself said of each part, and error.txt when
it failed.
"""

import argparse
import hashlib
import json
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from filesystem import caches, client, fio, fs_cache, nas_sampler
from filesystem.client import StoragePlan
from filesystem.nas_sampler import NasSampler
from filesystem.onefs import OnefsError
from filesystem.own_folder import OwnFolderError
from filesystem.parts import (
    StorageCase,
    counts,
    mounts_of,
    pace_of,
    parts,
    rates_of,
    seconds_of,
)
from measurement import steps
from measurement.choices import SettingError, whole
from measurement.interruption import Interrupted, stop_in_order
from measurement.machine import versions
from measurement.result import Result, ResultError
from measurement.sampling import NodeSampler, thinned
from measurement.site_program import SiteProgramError
from measurement.steps import StepError

# record.py, which says why a program ended, is beside this folder.
sys.path += [str(Path(__file__).resolve().parent.parent / "distributed")]
from record import run

CLIENT = Path(client.__file__)
_SECONDS = 120
_LAYOUT_SECONDS = 24 * 3600


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0] if __doc__ else "",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--results", required=True, help="folder for the results; several nodes must share it")
    add("--mounts", required=True, help="folders where storage is mounted, separated by commas")
    add("--loads", default=",".join(fio.LOADS), help="which ones, separated by commas")
    add(
        "--clients",
        default="",
        help="how many at once, separated by commas; empty: 1, 2, 4, ... and all",
    )
    add("--repeats", type=int, default=3, help="of each part; the papers': 5")
    add("--processes", type=int, default=4, help="on each client: one for each of its GPUs")
    add("--files", type=int, default=30, help="of each process")
    add("--size-mib", type=int, default=64 * 1024, help="of a process's files together")
    add("--depth", type=int, default=32, help="requests of a process at once")
    add("--rate-iops", type=int, default=83, help="1 MiB reads a second of one GPU, for training")
    add("--seconds", type=float, default=600, help="how long the training-like load is measured")
    add("--ramp", type=float, default=60, help="seconds before that, which do not count")
    add("--other-seconds", type=float, default=60, help="how long each other load is measured")
    add("--other-ramp", type=float, default=5, help="seconds before that, which do not count")
    add("--most-hits", type=float, default=0.5, help="most of the reads that caches may answer")
    add(
        "--storage-cache-gb",
        type=float,
        default=0,
        help="cache of the storage itself; 0: not known",
    )
    add("--flush-nas", default="", help=caches.FLUSH_HELP.format("part"))
    add("--nas-api", default="", help=nas_sampler.HELP)
    add("--caches-program", default=caches.DROP, help="what drops a host's caches, by sudo")
    return parser.parse_args()


class Clients:
    """The nodes that apply the load."""

    def __init__(self, plan: StoragePlan, there: steps.Nodes, results: Path) -> None:
        self.plan, self.there, self._results = plan, there, results
        self.is_prepared = False

    def all_do(
        self, work: str, folder: str, on: int, seconds: float, *options: str
    ) -> list[dict[str, Any]]:
        """Let some clients work at once; returns their answers, which stay in ``folder``."""
        into = self._results / "fio" / folder
        into.mkdir(parents=True, exist_ok=True)
        for old in into.glob("client-*.json"):
            old.unlink()
        command = [sys.executable, str(CLIENT), work, self.plan.text, "--into", str(into), *options]
        # Slurm would bind a task to one core.
        bound = ("--cpu-bind=none",)
        steps.run(steps.argv(self.there, command, on=on, options=bound), seconds)
        return [json.loads((into / f"client-{one}.json").read_text()) for one in range(on)]

    def measure(self, s: argparse.Namespace, part: StorageCase) -> dict[str, Any]:
        """Measure a part, after the files are there."""
        if not self.is_prepared:
            self.all_do("prepare", "files", self.there.count, _LAYOUT_SECONDS)
            self.is_prepared = True
        pace = pace_of(s, part.load)
        options = {
            "load": part.load,
            "on": ",".join(part.mounts),
            "depth": pace.depth,
            "rate-iops": pace.rate_iops,
            "seconds": pace.seconds,
            "ramp": pace.ramp_seconds,
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        seconds = 15 * _SECONDS + pace.seconds + pace.ramp_seconds
        caches.flush_nas(s.flush_nas)
        began = time.time()
        found = self.all_do("measure", part.folder, part.clients, seconds, *words)
        times = [round(began, 3), round(time.time(), 3)]
        return {**values_of(s, self.plan, part, found), "times": times}

    def remove(self) -> None:
        """Remove all files: here at once, as a job that is cancelled gets no more steps."""
        command = [sys.executable, str(CLIENT), "remove", self.plan.text]
        command += ["--into", str(self._results / "fio")]
        steps.run(command, _SECONDS)
        if self.there.in_job:
            steps.run(steps.argv(self.there, command, on=self.there.count), _SECONDS)


def values_of(
    s: argparse.Namespace, plan: StoragePlan, part: StorageCase, answers: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Put together what the clients of a part reached."""
    each = [fio.together(answer["processes"]) for answer in answers]
    how = [plan.how[mount] for mount in part.mounts]
    is_direct = all(one["direct"] for one in how)
    dropped = all(answer["caches_dropped"] for answer in answers)
    mine = plan.processes * plan.bytes
    asked = None
    if fio.LOADS[part.load].is_training and s.rate_iops:
        asked = part.clients * plan.processes * s.rate_iops * fio.MIB / fio.MB
    together = fio.together([one for answer in answers for one in answer["processes"]])
    return {
        "load": part.load,
        "mounts": list(part.mounts),
        "clients": part.clients,
        "run": part.run,
        **together,
        "asked_mb_per_second": asked,
        "by_client_mb_per_second": [one["mb_per_second"] for one in each],
        "engines": sorted({one["engine"] for one in how}),
        "direct": is_direct,
        "fs_cache": fs_cache.agreed(one["fs_cache"] for one in how),
        "caches_dropped": dropped,
        "nas_flushed_by": s.flush_nas or None,
        "expected_hit_rate": 0.0 if is_direct else caches.hit_rate(caches.memory_bytes(), mine),
        "storage_hit_rate": storage_hits(
            s, part, part.clients * mine, together["mb_per_second"] or 0
        ),
    }


def storage_hits(
    s: argparse.Namespace, part: StorageCase, there: float, mb_per_second: float
) -> float | None:
    """Return the share of a part's requests that the storage's own cache may answer.

    fio begins each part with the same requests, so a cache need only hold as much as a part gets
    through, however large the files are (``there``, in bytes).
    """
    if not s.storage_cache_gb:
        return None
    pace = pace_of(s, part.load)
    through = mb_per_second * fio.MB * (pace.seconds + pace.ramp_seconds)
    return caches.hit_rate(s.storage_cache_gb * 1e9, min(there, through) or there)


def described(clients: Clients) -> tuple[list[dict[str, Any]], StoragePlan]:
    """Ask each client what it is; returns that, and the plan with how each mount is read.

    An engine must work on every client.
    """
    found = clients.all_do("describe", "clients", clients.there.count, 10 * _SECONDS)
    how: dict[str, Any] = {}
    for mount in clients.plan.mounts:
        ways = [one["how"][mount] for one in found]
        engine = max((way["engine"] for way in ways), key=fio.ENGINES.index)
        how[mount] = {
            "engine": engine,
            "direct": all(way["direct"] for way in ways),
            "fs_cache": fs_cache.agreed(way["fs_cache"] for way in ways),
        }
    return found, replace(clients.plan, how=how)


def outgrown(plan: StoragePlan, found: Sequence[dict[str, Any]], most_hits: float) -> StoragePlan:
    """Let the files outgrow the clients' memory where their caches are in the way."""
    is_direct = all(way["direct"] for way in plan.how.values())
    if is_direct or not most_hits or all(one["may_drop_caches"] for one in found):
        return plan
    memory = max(one["memory_bytes"] for one in found)
    least = caches.outgrown(memory, most_hits) // plan.processes
    return replace(plan, bytes=max(plan.bytes, least))


def measure(
    s: argparse.Namespace, result: Result, todo: Sequence[StorageCase], clients: Clients
) -> None:
    """Measure all parts and write the results."""
    found, plan = described(clients)
    clients.plan = plan = outgrown(plan, found, s.most_hits)
    size = plan.bytes / fio.GIB
    print(f"{size:,.2f} GiB of files for each of {plan.processes} on a client", flush=True)
    for mount, how in plan.how.items():
        past = "past the clients' caches" if how["direct"] else "through the clients' caches"
        print(f"{mount}: {how['engine']}, {past}", flush=True)
    nas = NasSampler(nas_sampler.asked(s.nas_api), result.folder)
    with nas, NodeSampler(clients.there, result.folder) as sampler:
        rows = [result.part(part.name, partial(clients.measure, s, part)) for part in todo]
    hosts = [
        {
            **one["host"],
            "may_drop_caches": one["may_drop_caches"],
            "fs_cache": {mount: way["fs_cache"] for mount, way in one["how"].items()},
        }
        for one in found
    ]
    result.finish(
        hosts,
        {**versions(), "fio": found[0]["fio"]},
        {"rates": rates_of(rows)},
        thinned(sampler.samples()),
        nas.samples(),
    )


def main(s: argparse.Namespace) -> None:
    """Measure: the story from top to bottom."""
    results = Path(s.results).expanduser().absolute()
    there = steps.nodes()
    mounts = mounts_of(s.mounts)
    todo = parts(s, mounts, counts(s.clients, there.count))
    there = replace(there, count=max(part.clients for part in todo))
    chosen = {name: value for name, value in vars(s).items() if name != "results"}
    result = Result(results, "storage", {**chosen, "nodes": there.count}, len(todo))
    (results / "error.txt").unlink(missing_ok=True)
    minutes = seconds_of(s, todo) / 60
    print(f"{len(todo)} parts, {minutes:,.1f} min plus the time to write the files", flush=True)
    # The same for a run that goes on: what was left of it is used or removed.
    mark = hashlib.sha256(str(results).encode()).hexdigest()[:12]
    size = whole("size_mib", s.size_mib) * fio.MIB
    processes, files = whole("processes", s.processes), whole("files", s.files)
    plan = StoragePlan(f"run-{mark}", mounts, processes, files, size, s.caches_program, {})
    clients = Clients(plan, there, results)
    stop_in_order()
    try:
        measure(s, result, todo, clients)
    except Exception:
        try:
            clients.remove()
        except StepError as error:
            # It ended for another reason, which is told.
            print(f"not all of {plan.run} was removed: {error}", file=sys.stderr, flush=True)
        raise
    clients.remove()
    print(f"summary: {shlex.quote(str(results / 'summary.json'))}")


if __name__ == "__main__":
    of_nas = (OnefsError, SiteProgramError)
    plain = (SettingError, ResultError, StepError, OwnFolderError, *of_nas, Interrupted)
    run(main, settings(), *plain)
