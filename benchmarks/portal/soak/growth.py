"""What the portal's own processes and files take, and how fast that grows."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil

from benchmarks.portal.harness.trend import Trend, trend
from tests import faults
from tests.instance import LOGS, Instance

HOUR_LIMITS: Mapping[str, float] = {
    "memory_mb": 20.0,
    "threads": 2.0,
    "descriptors": 10.0,
    "database_mb": 16.0,
    "logs_mb": 64.0,
}
"""By what it is, a process's or the portal's: what the interval's lower end must not exceed."""
MOST: Mapping[str, float] = {
    "memory_mb": 500.0,
    "threads": 64.0,
    "descriptors": 2000.0,
    "database_mb": 64.0,
    "logs_mb": 512.0,
}
"""What nothing may ever exceed."""
_WARM_UP_SECONDS = 1800.0
"""Of each life, also of one that was started again: growth in this time is told, and not judged."""
_JUDGED_SECONDS = 1800.0
"""The least that must follow for a slope to be judged."""
SERVICES = ("dsportal.cluster", "dsportal.reconciler", "dsportal.culler")
PROCESSES = ("hub", *(module.rpartition(".")[2] for module in SERVICES))
_MEGABYTE = 1024 * 1024


Series = Mapping[object, Sequence[tuple[float, float]]]
"""Moments, in seconds, and values, by the life of a process."""


@dataclass
class Growth:
    """Samples of each figure, by the life of the process that they are of."""

    portal: Instance
    samples: dict[str, dict[object, list[tuple[float, float]]]] = field(default_factory=dict)
    hub_open: dict[int, dict[str, int]] = field(default_factory=dict)
    """What the hub had open in each tenth minute: see `open_files`."""

    def sample(self, at: float) -> None:
        """Measure now; what a fault has taken away is left out."""
        for name, pid in _processes():
            # KeyError: one that has just been killed has no memory any more.
            with suppress(OSError, KeyError):
                for what, value in _of_process(pid):
                    self._keep(f"{name} {what}", pid, at, value)
            minute = 10 * int(at / 600)
            if name == "hub" and minute not in self.hub_open:
                with suppress(psutil.Error, OSError):
                    self.hub_open[minute] = open_files(pid)
        state = Path(self.portal.settings["hub"]["state_dir"])
        with suppress(OSError):
            size = sum(file.stat().st_size for file in state.glob("*.sqlite*"))
            self._keep("database_mb", 0, at, size / _MEGABYTE)
        with suppress(OSError):
            size = sum(file.stat().st_size for file in LOGS.iterdir())
            self._keep("logs_mb", 0, at, size / _MEGABYTE)

    def _keep(self, name: str, life: object, at: float, value: float) -> None:
        self.samples.setdefault(name, {}).setdefault(life, []).append((at, value))

    def report(self) -> dict[str, Any]:
        """Return for each figure: the most, the last, the slopes with their intervals."""
        shown = {}
        for name, series in sorted(self.samples.items()):
            values = [value for points in series.values() for _, value in points]
            shown[name] = {
                "most": round(max(values), 2),
                "last": round(values[-1], 2),
                "course": _course(series),
                **_told(trend(series)),
                "warmed_up": _told(trend(_warmed_up(series))),
            }
        return shown

    def broken(self) -> Iterator[str]:
        """Give what exceeds its limit, and what was never seen, in words."""
        for name in PROCESSES:
            if not any(series.startswith(f"{name} ") for series in self.samples):
                yield f"{name} was never seen"
        for name, series in sorted(self.samples.items()):
            what = name.rpartition(" ")[2]
            most = max(value for points in series.values() for _, value in points)
            if most > MOST[what]:
                yield f"{name} was {most:.1f}, more than {MOST[what]:.0f}"
            slope = trend(_warmed_up(series))
            limit = HOUR_LIMITS[what]
            if slope and slope.low > limit:
                yield f"{name} grows by {slope.per_hour:.1f} an hour, more than {limit:.0f}"


def _course(series: Series) -> list[float]:
    """Return the means of the tenths of the time, of those in which there are samples."""
    points = sorted(point for life in series.values() for point in life)
    begin, end = points[0][0], points[-1][0]
    tenths: dict[int, list[float]] = {}
    for at, value in points:
        tenths.setdefault(int(9.99 * (at - begin) / max(end - begin, 1.0)), []).append(value)
    return [round(fmean(values), 2) for _, values in sorted(tenths.items())]


def _told(slope: Trend | None) -> dict[str, Any]:
    return {
        "per_hour": slope and round(slope.per_hour, 2),
        "interval": slope and [round(slope.low, 2), round(slope.high, 2)],
    }


def _warmed_up(series: Series) -> Series:
    """Return the lives that are long enough to be judged, without the time they warmed up in."""
    warm = {}
    for life, points in series.items():
        since = points[0][0] + _WARM_UP_SECONDS
        if points[-1][0] >= since + _JUDGED_SECONDS:
            warm[life] = [(at, value) for at, value in points if at >= since]
    return warm


def _processes() -> Iterator[tuple[str, int]]:
    """Give those of `PROCESSES` that run, with their numbers."""
    with suppress(AssertionError, ValueError):
        yield "hub", int(faults.service("pid", "hub"))
    for module in SERVICES:
        with suppress(AssertionError, OSError):
            if pid := faults.service_of_hub(module):
                yield module.rpartition(".")[2], pid


def open_files(pid: int) -> dict[str, int]:
    """Count what a process has open: connections by their fixed end, and all else."""
    found = Counter(_end(one) for one in psutil.Process(pid).net_connections("inet"))
    found["others"] = len(os.listdir(f"/proc/{pid}/fd")) - found.total()
    return dict(found.most_common())


def _end(connection: Any) -> str:
    """Name the end of a connection that is no passing port: ``8081`` served, ``to 8001`` asked."""
    here, there = connection.laddr, connection.raddr
    if not there:
        return f"{here.port} listens"
    served = here.port < there.port
    return f"{here.port} served" if served else f"to {there.port}"


def _of_process(pid: int) -> Iterator[tuple[str, float]]:
    status = Path(f"/proc/{pid}/status").read_text()
    of = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    yield "memory_mb", int(of["VmRSS"].split()[0]) / 1024
    yield "threads", int(of["Threads"])
    yield "descriptors", len(os.listdir(f"/proc/{pid}/fd"))
