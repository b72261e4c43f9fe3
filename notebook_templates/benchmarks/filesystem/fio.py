"""What fio is told, and what it says: a load on storage, written down and read back.

fio's words (fio(1)): a *job* here is one process that stands for a GPU; it has files of its own,
named after its number among the processes of all clients.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FIO = "/usr/bin/fio"
KIB, MIB, GIB = 2**10, 2**20, 2**30
MB = 1e6
"""What the papers' MB/s are: 10^6 bytes; file sizes are in GiB, as fio's."""

ENGINES = ("libaio", "io_uring", "psync")
"""In this order the first is taken that works on the host; psync has one request at a time."""


class FioError(RuntimeError):
    """fio could not do it; the message is what it said."""


@dataclass(frozen=True)
class Load:
    """What each process does to its files."""

    pattern: str
    """fio's word."""
    block_bytes: int
    is_training: bool = False
    """As a GPU that trains: no faster than it takes images."""

    @property
    def is_write(self) -> bool:
        """Whether it writes; into files that are there already."""
        return "write" in self.pattern


LOADS = {
    "training": Load("read", MIB, is_training=True),
    "read": Load("read", MIB),
    "write": Load("write", MIB),
    "random-read": Load("randread", 4 * KIB),
    "random-write": Load("randwrite", 4 * KIB),
}


@dataclass(frozen=True)
class Files:
    """What each process has."""

    number: int
    bytes: int
    """Of all of them; fio gives each the same share, in whole KiB."""


@dataclass(frozen=True)
class FioProcess:
    """A process of one client."""

    number: int
    """Among those of all clients."""
    folder: str
    engine: str
    is_direct: bool


@dataclass(frozen=True)
class FioLoad:
    """How a load is applied."""

    depth: int
    rate_iops: int
    """At most so many requests a second from a process that stands for a training; 0: no limit."""
    seconds: float
    ramp_seconds: float
    """Before they are counted."""


def _option(name: str, value: object) -> str:
    return f"--{name}={value}"


def _argv(report: str, everywhere: Mapping[str, Any], processes: Sequence[FioProcess]) -> list[str]:
    words = [FIO, "--output-format=json", _option("output", report), "--name=global", "--thread"]
    words += [_option(name, value) for name, value in everywhere.items()]
    for process in processes:
        words += [
            _option("name", f"process{process.number}"),
            _option("directory", process.folder),
            _option("ioengine", process.engine),
            _option("direct", int(process.is_direct)),
        ]
    return words


def _of(files: Files) -> dict[str, Any]:
    # fio's own names hold the number of a job among its clones, and all have the same.
    return {
        "nrfiles": files.number,
        "size": files.bytes,
        "filename_format": "$jobname.$filenum",
    }


def layout(files: Files, processes: Sequence[FioProcess], report: str) -> list[str]:
    """Return the command that writes the files, full of what cannot be compressed."""
    how = {"rw": "read", "bs": MIB, "create_only": 1, "create_serialize": 0}
    return _argv(report, {**_of(files), **how}, processes)


def trial(engine: str, is_direct: bool, folder: str, report: str) -> list[str]:
    """Return the command that tries an engine on one small file."""
    how = {"rw": "write", "bs": 4 * KIB, "size": 4 * KIB, "filename_format": "$jobname.$filenum"}
    return _argv(report, how, [FioProcess(0, folder, engine, is_direct)])


def command(
    load: Load, files: Files, pace: FioLoad, processes: Sequence[FioProcess], report: str
) -> list[str]:
    """Return the command that applies a load to files that were written before."""
    everywhere = {
        **_of(files),
        "rw": load.pattern,
        "bs": load.block_bytes,
        "iodepth": pace.depth,
        "allow_file_create": 0,
        "time_based": 1,
        "runtime": f"{pace.seconds:g}",
        "ramp_time": f"{pace.ramp_seconds:g}",
    }
    if load.is_training and pace.rate_iops:
        everywhere["rate_iops"] = pace.rate_iops
    if load.is_write:
        # What waits in a cache at the end is not written yet.
        everywhere["end_fsync"] = 1
    return _argv(report, everywhere, processes)


def read_report(text: str) -> dict[str, Any]:
    """Read what fio wrote; it puts remarks before its JSON. Raises `FioError`."""
    begin = text.find("{")
    try:
        report, _ = json.JSONDecoder().raw_decode(text[max(begin, 0) :])
    except ValueError as error:
        raise FioError(f"fio gave no report: {text[:2000].strip()}") from error
    return dict(report)


def figures(report: Mapping[str, Any], load: Load) -> list[dict[str, float | None]]:
    """Return what each process reached: fio's figures, with latencies in ms.

    One that had no I/O in the time that counts, on storage that hung, has rates of 0 and no
    latency. Raises `FioError` where a process failed.
    """
    found = []
    for job in report["jobs"]:
        side = job["write" if load.is_write else "read"]
        if job["error"]:
            raise FioError(f"fio's {job['jobname']}: error {job['error']}")
        if not side["total_ios"]:
            nothing = {"latency_ms": None, "latency_99_ms": None}
            found.append({"mb_per_second": 0.0, "iops": 0.0, **nothing})
            continue
        late = side["clat_ns"].get("percentile", {}).get("99.000000", side["clat_ns"]["max"])
        found.append(
            {
                "mb_per_second": side["bw_bytes"] / MB,
                "iops": side["iops"],
                "latency_ms": side["lat_ns"]["mean"] / 1e6,
                "latency_99_ms": late / 1e6,
            }
        )
    return found


def together(processes: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return what processes reached together: sums of rates, the mean latency, the latest 99 %.

    The mean is over requests, so a process counts by how many a second it had; ``None``: of none.
    """
    worked = [one for one in processes if one["iops"]]
    iops = sum(one["iops"] for one in worked)
    late = sum(one["latency_ms"] * one["iops"] for one in worked)
    return {
        "mb_per_second": sum(one["mb_per_second"] for one in processes),
        "iops": iops,
        "latency_ms": late / iops if worked else None,
        "latency_99_ms": max((one["latency_99_ms"] for one in worked), default=None),
        "idle_processes": len(processes) - len(worked),
    }
