"""What the NAS's disks read during the runs of a training, in its own words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

Row = Mapping[str, Any]
_MB_IN_KIB = 1e6 / 1024


@dataclass(frozen=True)
class NasReads:
    """Means over runs: all that the NAS did meanwhile, also for others."""

    per_second: float
    kib: float | None
    """Of a read; ``None``: there was none, or the NAS did not say."""


def nas_reads(samples: Sequence[Row], runs: Sequence[Row]) -> NasReads | None:
    """Take the means of the samples that fall into the runs; ``None`` where none does.

    The mean size is that of all reads: seconds with many of them count for more.
    """
    if not samples:
        return None
    times = [(run["throughput"][0][0], run["throughput"][-1][0]) for run in runs]
    during = [
        line
        for line in samples
        if line["disk_reads_per_second"] is not None
        and any(begin < line["time"] <= end for begin, end in times)
    ]
    if not during:
        return None
    sized = [line for line in during if line["disk_read_mb_per_second"] is not None]
    reads, mb = (
        sum(line[name] for line in sized)
        for name in ("disk_reads_per_second", "disk_read_mb_per_second")
    )
    return NasReads(
        fmean(line["disk_reads_per_second"] for line in during),
        mb / reads * _MB_IN_KIB if reads else None,
    )
