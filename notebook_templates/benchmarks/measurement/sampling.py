#!/usr/bin/env python
"""How busy a node is while a measurement runs: GPUs, cores, memory, network and storage.

    python sampling.py --folder samples [--every 1]

Writes a line for each sample until it is told to end (SIGTERM), or its parent is gone. The cores
are those that this process may use, and the GPUs those that it may see: in a Slurm job the job's.
Memory, network and storage are the whole node's: with others on the node, theirs too.
"""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

sys.path += [str(Path(__file__).resolve().parents[1])]

from measurement import counters, machine, steps
from measurement.counters import Counters
from measurement.result import read_lines

PROC = Path("/proc")
INFINIBAND = Path("/sys/class/infiniband")
_SMI_SECONDS = 10.0
_BEGIN_SECONDS = 10.0
_LOOK_SECONDS = 0.05
_END_SECONDS = 10.0
_SMI = ["/usr/bin/nvidia-smi", "--format=csv,noheader,nounits"]


Samples = Mapping[str, Sequence[Mapping[str, Any]]]
"""Of each node, what was seen at some moments."""
MOST_POINTS = 1000
"""A summary keeps no more of a node: so many fit on a line of a chart."""


def thinned(samples: Samples, most: int = MOST_POINTS) -> dict[str, list[dict[str, Any]]]:
    """Leave out samples, evenly, until each node has ``most`` of them at most."""
    return {
        node: [dict(line) for line in lines[:: -(-len(lines) // most) or 1]]
        for node, lines in samples.items()
    }


def within(
    lines: Sequence[Mapping[str, Any]], times: Sequence[tuple[float, float]]
) -> list[Mapping[str, Any]]:
    """Return the samples of some times, each from its begin to its end.

    A sample says what was since the one before: of a time between two, the later one is taken.
    """
    found = []
    for begin, end in times:
        later = [line for line in lines if line["time"] > begin]
        during = [line for line in later if line["time"] <= end]
        found += during or later[:1]
    return found


class NodeSampler:
    """Samples all nodes of a measurement while its block runs."""

    def __init__(self, there: steps.Nodes, folder: Path, every: float = 1.0) -> None:
        """Keep the samples below ``folder``: a file for each node; ``every`` so many seconds."""
        self._folder = folder / "samples"
        command = [sys.executable, str(Path(__file__).resolve()), "--folder", str(self._folder)]
        command += ["--every", str(every)]
        # It shares cores and memory with the steps that it looks at.
        self._argv = steps.argv(there, command, on=there.count, options=["--overlap"])
        self._nodes, self._every = there.count, every
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "NodeSampler":
        """Begin, and wait until all nodes are looked at; not for long."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # srun tells at length that it was ended; that is no news for the job's log.
        with (self._folder / "launcher.log").open("w") as log:
            self._process = subprocess.Popen(self._argv, stdin=subprocess.DEVNULL, stderr=log)
        deadline = time.monotonic() + _BEGIN_SECONDS
        while len(list(self._folder.glob("*.jsonl"))) < self._nodes:
            if self._process.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(_LOOK_SECONDS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait_for(self, moment: float) -> None:
        """Wait until each node was looked at after a moment, in seconds since 1970; not for long.

        A sample says what was since the one before, so the end of what was measured is in the next.
        """
        deadline = time.monotonic() + 2 * self._every
        while self._process is not None and self._process.poll() is None:
            newest = [lines[-1]["time"] for lines in self.samples().values() if lines]
            is_seen = len(newest) == self._nodes and min(newest) > moment
            if is_seen or time.monotonic() > deadline:
                break
            time.sleep(self._every / 4)

    def samples(self) -> dict[str, list[dict[str, Any]]]:
        """Return the samples of each node, oldest first."""
        return read(self._folder)


def read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the samples of each node of a folder; lines that were cut short are left out."""
    return {file.stem: read_lines(file) for file in sorted(folder.glob("*.jsonl"))}


def look(cores: set[int], disks: list[str], interfaces: list[str]) -> Counters:
    """Read the counters of this moment."""
    network = counters.network_bytes(_text("net/dev"), interfaces)
    remote = counters.rdma_bytes(INFINIBAND)
    disk = counters.disk_bytes(_text("diskstats"), disks)
    nfs = counters.nfs_bytes(_text("self/mountstats"), _text("self/mountinfo"))
    percents, memory = gpus_now()
    return Counters(
        cpu_busy_seconds=counters.busy_seconds(_text("stat"), cores, os.sysconf("SC_CLK_TCK")),
        now_memory_mb=counters.used_memory_mb(_text("meminfo")),
        received_bytes=network[0] + remote[0],
        sent_bytes=network[1] + remote[1],
        read_bytes=disk[0] + nfs[0],
        written_bytes=disk[1] + nfs[1],
        now_gpu_percents=percents,
        now_gpu_memory_mb=memory,
    )


def gpus_now() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return of each GPU the share of the last moment in which it computed, %, and MiB used."""
    if not Path(_SMI[0]).exists():
        return (), ()
    argv = [*_SMI, "--query-gpu=utilization.gpu,memory.used"]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_SMI_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return (), ()
    rows = list(csv.reader(done.stdout.splitlines(), skipinitialspace=True))
    shares, memory = ([machine.number(row[column]) for row in rows] for column in (0, 1))
    # Of a part of a GPU (MIG) nvidia-smi says "[N/A]".
    return (
        tuple(float(one) for one in shares if one is not None),
        tuple(float(one) for one in memory if one is not None),
    )


def _is_infiniband(interface: str) -> bool:
    # ARPHRD_INFINIBAND of linux/if_arp.h.
    return (Path("/sys/class/net") / interface / "type").read_text().strip() == "32"


def sample(file: Path, every: float, ended: threading.Event) -> None:
    """Write a line every so many seconds until somebody wants the end."""
    cores = os.sched_getaffinity(0)
    disks = [path.name for path in Path("/sys/block").iterdir() if counters.is_disk(path.name)]
    interfaces = machine.interfaces()
    if any(INFINIBAND.glob("*/ports/*/counters/port_rcv_data")):
        # What goes over IPoIB is in the port's own counters, too.
        interfaces = [name for name in interfaces if not _is_infiniband(name)]
    parent = os.getppid()
    before, since = look(cores, disks, interfaces), time.monotonic()
    with file.open("a", buffering=1) as lines:
        while not ended.wait(every) and os.getppid() == parent:
            now, at = look(cores, disks, interfaces), time.monotonic()
            rates = counters.rates(before, now, at - since, len(cores))
            lines.write(json.dumps({"time": round(time.time(), 3), **rates}) + "\n")
            before, since = now, at


def main() -> None:
    """Sample this node."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", required=True, type=Path, help="where the node's file is")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two samples")
    given = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    sample(given.folder / f"{machine.node_name()}.jsonl", given.every, ended)


def _text(name: str) -> str:
    try:
        return (PROC / name).read_text(errors="surrogateescape")
    except OSError:  # a container may not show all
        return ""


if __name__ == "__main__":
    main()
