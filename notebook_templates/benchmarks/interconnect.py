#!/usr/bin/env python
"""Measure how fast processes add up numbers together, and how fast GPUs copy to each other.

    python interconnect.py --results run1 --processes 4                     this machine alone
    sbatch --nodes=4 --ntasks-per-node=4 --gres=gpu:4 --wrap 'python interconnect.py --results run1'

The second is on 1, 2 and 4 nodes. All-reduces of PyTorch everywhere: NCCL between GPUs, gloo
between CPUs. Where there are GPUs also copies between those of a node, and NCCL's own tests if
all_reduce_perf is found. Within a node PyTorch's all-reduces and the copies are measured with
peer-to-peer on and off. In RESULTS stay progress.jsonl, summary.json, and error.txt when it failed.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from links import bus, nccl_tests
from links.nccl_tests import TableError
from measurement import choices, machine, repeats, steps
from measurement.choices import SettingError, whole
from measurement.interruption import Interrupted, stop_in_order
from measurement.result import Result, ResultError
from measurement.sampling import NodeSampler, thinned
from measurement.steps import Nodes, StepError

# record.py, which says why a program ended, is among the templates for several nodes.
sys.path += [str(Path(__file__).resolve().parent.parent / "distributed")]
import record
import transport

ALLREDUCE = Path(bus.__file__).with_name("allreduce.py")
PEERS = Path(bus.__file__).with_name("peers.py")
PMIX = "--mpi=pmix"
# What NCCL is told (NVIDIA's documentation, "Environment Variables").
# NVLink SHARP adds up in the switches, whatever is said of peer-to-peer.
NO_PEERS = {"NCCL_P2P_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}
MOST_ON_GPUS, MOST_ON_CPUS = 8 * 2**30, 64 * 2**20
_SECONDS = 1800


@dataclass(frozen=True)
class Group:
    """Processes that add up together."""

    nodes: int
    each: int
    """Processes on each of them."""

    @property
    def processes(self) -> int:
        """All of them."""
        return self.nodes * self.each

    @property
    def name(self) -> str:
        """What it is called in the results."""
        where = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        return f"{self.processes} processes on {where}"


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="folder for the results; several nodes must share it")
    add("--nodes", default="", help="how many, separated by commas; empty: 1, 2, 4, ... and all")
    add("--processes", default="", help="on each node, separated by commas; empty: all of the job")
    add("--least", type=int, default=1024, help="the smallest message, in bytes")
    add(
        "--most",
        type=int,
        default=0,
        help="the largest message, in bytes; 0: 8 GiB on GPUs, else 64 MiB",
    )
    add("--factor", type=int, default=4, help="from one size to the next")
    add("--iterations", type=int, default=20, help="timed all-reduces for each size")
    add("--warmup", type=int, default=5, help="untimed all-reduces before them")
    add("--repeats", type=int, default=3, help="of each part")
    add("--all-reduce-perf", default="", help="NCCL's own test; empty: that of a loaded module")
    return parser.parse_args()


def counts(name: str, asked: str, most: int | None) -> list[int]:
    """Read numbers with commas between, each from 1 to ``most``; raises `SettingError`."""
    words = asked.split(",")
    if not all(word.isdecimal() and int(word) >= 1 for word in words):
        raise SettingError(f"{name} is {asked!r}; it must be whole numbers separated by commas")
    found = sorted({int(word) for word in words})
    if most is not None and found[-1] > most:
        raise SettingError(f"{name} is {asked!r}, and there are {most}: ask for more")
    return found


def groups(nodes: Sequence[int], each: Sequence[int]) -> list[Group]:
    """Return all that can add up: one process alone cannot. Raises `SettingError` for none."""
    found = [Group(one, many) for one in nodes for many in each if one * many > 1]
    if not found:
        raise SettingError("an all-reduce needs two processes: set processes or nodes to 2")
    return found


def doubled(most: int) -> str:
    """Return 1, 2, 4, ... and the last, with commas between.

    >>> doubled(6)
    '1,2,4,6'
    """
    return ",".join(map(str, choices.doubled(most)))


def command_of(s: argparse.Namespace, there: Nodes, group: Group) -> list[str]:
    """Return what measures a group: as a step of the job, or here."""
    names = ("least", "most", "factor", "iterations", "warmup")
    options = [f"--{name}={getattr(s, name)}" for name in names]
    command = [sys.executable, str(ALLREDUCE), *options]
    if not there.in_job:
        return [*command, f"--here={group.each}"]
    return steps.argv(there, command, on=group.nodes, each=group.each)


def measure(
    s: argparse.Namespace, there: Nodes, group: Group, run: int, is_direct: bool = True
) -> dict[str, Any]:
    """Let PyTorch add up; not ``is_direct``: through the host's memory, not from GPU to GPU."""
    variables = {} if is_direct else NO_PEERS
    found = steps.answer(command_of(s, there, group), _SECONDS, variables)
    return {
        "engine": found["backend"] if is_direct else f"{found['backend']}, peer-to-peer off",
        "nodes": group.nodes,
        "run": run,
        **bus.measured(found["times"], group.processes),
    }


def measure_nccl(
    s: argparse.Namespace, there: Nodes, program: Path, group: Group, run: int
) -> dict[str, Any]:
    """Let NCCL's own test add up: over the GPUs of a node, or over nodes, a process for each GPU.

    Over nodes it must have been built with MPI, and Slurm with PMIx; where that is not so, the part
    says it.
    """
    row = {"engine": "all_reduce_perf", "nodes": group.nodes, "run": run}
    over_nodes = group.nodes > 1
    sizes = (s.least, s.most, s.factor)
    each = 1 if over_nodes else group.each
    argv = nccl_tests.argv(program, *sizes, each, s.iterations, s.warmup)
    step = (
        steps.argv(there, argv, on=group.nodes, each=group.each, options=[PMIX])
        if over_nodes
        else steps.argv(there, argv)
    )
    try:
        printed = steps.run(step, _SECONDS)
        times = nccl_tests.read(printed, group.processes)
    except (StepError, TableError) as error:
        if not over_nodes:
            raise
        return {**row, "missing": str(error)}
    # The bandwidth is worked out as for PyTorch: the table has few digits of it.
    found = bus.measured(
        [{"bytes": one["bytes"], "microseconds": one["microseconds"]} for one in times],
        group.processes,
    )
    return {**row, **found}


def measure_peers(there: Nodes) -> dict[str, Any]:
    """Let the GPUs of each node copy to each other."""
    argv = steps.argv(there, [sys.executable, str(PEERS)], on=there.count)
    found = [json.loads(line) for line in steps.run(argv, _SECONDS).splitlines()]
    return {"peers": sorted(found, key=lambda one: str(one["node"]))}


def parts(s: argparse.Namespace, there: Nodes, gpus: int) -> dict[str, Callable[[], Any]]:
    """Return all that is measured, by its name, in its order."""
    nodes = counts("nodes", s.nodes or doubled(there.count), there.count)
    # Without Slurm a single process would have nobody.
    there_are = there.tasks if there.in_job else gpus
    each = counts("processes", s.processes or str(there_are or 2), there_are or None)
    runs = range(1, s.repeats + 1)
    found: dict[str, Callable[[], Any]] = {
        f"{group.name}, run {run}": partial(measure, s, there, group, run)
        for group in groups(nodes, each)
        for run in runs
    }
    # A step cannot have more processes on a node than the job has.
    most = min(gpus, there.tasks) if there.in_job else gpus
    if most > 1:
        whole_node = Group(1, most)
        for run in runs:
            name = f"{whole_node.name}, peer-to-peer off, run {run}"
            found[name] = partial(measure, s, there, whole_node, run, is_direct=False)
    program = nccl_tests.find(s.all_reduce_perf)
    if s.all_reduce_perf and program is None:
        raise SettingError(f"all-reduce-perf is {s.all_reduce_perf!r}; there is no such program")
    if program and gpus * max(nodes) > 1:
        for group in groups(nodes, [gpus]):
            where = "1 node" if group.nodes == 1 else f"{group.nodes} nodes"
            for run in runs:
                name = f"NCCL's tests, {group.processes} GPUs on {where}, run {run}"
                found[name] = partial(measure_nccl, s, there, program, group, run)
    if gpus:
        found["copies between GPUs"] = partial(measure_peers, there)
    return found


def rates_of(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Put the runs of each size beside each other."""
    names = ("engine", "nodes", "processes", "bytes")
    sizes = [{**row, **size} for row in rows for size in row["sizes"]]
    return [
        {
            **{name: runs[0][name] for name in names},
            **repeats.spread(runs, "microseconds"),
            **repeats.spread(runs, "bus_gb_per_second"),
            "runs": len(runs),
        }
        for runs in repeats.by(sizes, *names)
    ]


def main(s: argparse.Namespace) -> None:
    """Measure: the story from top to bottom."""
    results = Path(s.results).expanduser().absolute()
    there, gpus = steps.nodes(), len(machine.gpus())
    for name in ("repeats", "iterations"):
        whole(name, getattr(s, name))
    s.most = s.most or (MOST_ON_GPUS if gpus else MOST_ON_CPUS)
    try:
        bus.sizes(s.least, s.most, s.factor)
    except ValueError as error:
        raise SettingError(str(error)) from error
    todo = parts(s, there, gpus)
    chosen = {name: value for name, value in vars(s).items() if name != "results"}
    chosen |= {"nodes_there": there.count, "gpus_per_node": gpus, **transport.recorded(os.environ)}
    result = Result(results, "interconnect", chosen, len(todo), machine.device())
    (results / "error.txt").unlink(missing_ok=True)
    print(f"parts: {len(todo)}; nodes: {there.count}; GPUs on each: {gpus}", flush=True)
    stop_in_order()
    with NodeSampler(there, results) as sampler:
        rows = [result.part(name, measure) for name, measure in todo.items()]
    figures = {"rates": rates_of([row for row in rows if "sizes" in row])}
    samples = thinned(sampler.samples())
    result.finish(steps.hosts(there), machine.versions("torch"), figures, samples)


if __name__ == "__main__":
    plain = (SettingError, ResultError, StepError, TableError, Interrupted)
    record.run(main, settings(), *plain)
