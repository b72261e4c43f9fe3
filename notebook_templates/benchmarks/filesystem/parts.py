"""What is measured of storage, part by part, and what the runs of a part come to together."""

import argparse
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filesystem import fio, fs_cache
from measurement import repeats
from measurement.choices import SettingError, doubled, whole


@dataclass(frozen=True)
class StorageCase:
    """One measurement: a load from some clients at once on one mount, or on several in turn."""

    load: str
    clients: int
    mounts: tuple[str, ...]
    run: int

    @property
    def name(self) -> str:
        """What it is called in the results."""
        where = self.mounts[0] if len(self.mounts) == 1 else f"{len(self.mounts)} mounts in turn"
        return f"{self.load}, {where}, {clients(self.clients)}, run {self.run}"

    @property
    def folder(self) -> str:
        """Name the folder for what fio said of it."""
        mark = hashlib.sha256(self.name.encode()).hexdigest()[:8]
        return f"{self.load}-{self.clients}-clients-run-{self.run}-{mark}"


def clients(number: int) -> str:
    """Say how many there are."""
    return "1 client" if number == 1 else f"{number} clients"


def counts(asked: str, there: int) -> list[int]:
    """Return how many clients are to work at once.

    >>> counts("", 6)
    [1, 2, 4, 6]
    """
    if asked:
        found = sorted({whole("clients", one) for one in asked.split(",")})
        if found[-1] > there:
            raise SettingError(f"clients is {asked}, and there are {there} nodes: ask for more")
        return found
    return doubled(there)


def mounts_of(asked: str) -> tuple[str, ...]:
    """Return the mounts; fio gives some characters in paths a meaning of their own."""
    found = tuple(str(Path(one).expanduser().absolute()) for one in asked.split(",") if one)
    if not found or len(set(found)) < len(found):
        raise SettingError(f"mounts is {asked!r}; name folders, each once, separated by commas")
    return found


def parts(
    s: argparse.Namespace, mounts: tuple[str, ...], clients: Sequence[int]
) -> list[StorageCase]:
    """Return all that is measured, in its order."""
    loads = [one for one in s.loads.split(",") if one]
    if unknown := [one for one in loads if one not in fio.LOADS] or not loads:
        raise SettingError(f"loads has {unknown}; there are {', '.join(fio.LOADS)}")
    where = [(one,) for one in mounts] + ([mounts] if len(mounts) > 1 else [])
    return [
        StorageCase(load, count, place, number)
        for place in where
        for load in loads
        for count in clients
        for number in range(1, whole("repeats", s.repeats) + 1)
    ]


def pace_of(s: argparse.Namespace, load: str) -> fio.FioLoad:
    """Return how a load is applied."""
    if fio.LOADS[load].is_training:
        return fio.FioLoad(s.depth, s.rate_iops, s.seconds, s.ramp)
    return fio.FioLoad(s.depth, 0, s.other_seconds, s.other_ramp)


def seconds_of(s: argparse.Namespace, todo: Sequence[StorageCase]) -> float:
    """Return how long measuring takes, without the writing of the files."""
    paces = [pace_of(s, part.load) for part in todo]
    return sum(pace.seconds + pace.ramp_seconds for pace in paces)


def rates_of(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the runs of each part beside each other."""
    return [
        {
            **{name: runs[0][name] for name in ("load", "mounts", "clients")},
            # Parts that were kept from before an upgrade do not say.
            "fs_cache": fs_cache.agreed(run.get("fs_cache") for run in runs),
            **repeats.spread(runs, "mb_per_second"),
            **repeats.spread(runs, "iops"),
            **repeats.spread(runs, "latency_ms"),
            "asked_mb_per_second": runs[0]["asked_mb_per_second"],
            "runs": len(runs),
        }
        for runs in repeats.by(rows, "load", "mounts", "clients")
    ]
