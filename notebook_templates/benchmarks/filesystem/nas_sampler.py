"""What the NAS itself did while a measurement ran, beside what the nodes saw.

The papers show throughput, disk reads a second and the mean size of one from InsightIQ; the same
figures come from OneFS's statistics, which are renewed every five seconds.
"""

import json
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from filesystem.onefs import SECONDS, Onefs, OnefsError
from measurement.result import read_lines

EVERY_SECONDS = 5.0
HELP = "the NAS that is asked for its statistics, such as https://nas.example.org:8080"
# Of the whole NAS. "out" is what it gives, "in" what it takes; a transfer is a request to a disk.
KEYS = {
    "read_bytes": "ifs.bytes.out.rate",
    "written_bytes": "ifs.bytes.in.rate",
    "disk_read_bytes": "cluster.disk.bytes.out.rate",
    "disk_reads": "cluster.disk.xfers.out.rate",
    "disk_writes": "cluster.disk.xfers.in.rate",
}


def line(values: Mapping[str, float]) -> dict[str, float | None]:
    """Return a sample's figures from what the NAS said; ``None``: it did not say.

    >>> line({"ifs.bytes.out.rate": 2.5e9, "cluster.disk.bytes.out.rate": 1e9,
    ...       "cluster.disk.xfers.out.rate": 10000.0})["disk_read_kib"]
    97.65625
    """
    found = {name: values.get(key) for name, key in KEYS.items()}
    reads, from_disks = found["disk_reads"], found["disk_read_bytes"]
    return {
        "read_mb_per_second": _mb(found["read_bytes"]),
        "written_mb_per_second": _mb(found["written_bytes"]),
        "disk_read_mb_per_second": _mb(from_disks),
        "disk_reads_per_second": reads,
        "disk_writes_per_second": found["disk_writes"],
        "disk_read_kib": from_disks / reads / 1024 if reads and from_disks is not None else None,
    }


def _mb(value: float | None) -> float | None:
    return None if value is None else round(value / 1e6, 3)


class NasSampler:
    """Asks the NAS every few seconds while its block runs; where it does not answer, that is said.

    The measurement itself goes on without it.
    """

    def __init__(self, nas: Onefs | None, folder: Path, every: float = EVERY_SECONDS) -> None:
        """Keep the samples below ``folder``; no ``nas``: there is nobody to ask."""
        self._every, self._file = every, folder / "nas.jsonl"
        self._ended = threading.Event()
        self._thread = (
            threading.Thread(target=self._sample, args=(nas,), daemon=True, name="nas")
            if nas is not None
            else None
        )

    def __enter__(self) -> "NasSampler":
        """Begin."""
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, with a last sample."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(2 * SECONDS)

    def samples(self) -> list[dict[str, Any]]:
        """Return the samples, oldest first, also those of a run that was interrupted."""
        return read_lines(self._file)

    def _sample(self, nas: Onefs) -> None:
        is_told = False
        is_last = False
        while not is_last:
            is_last = self._ended.wait(self._every)
            try:
                self._keep(line(nas.statistics(list(KEYS.values()))))
                is_told = False
            except OnefsError as error:
                if not is_told:
                    print(f"the NAS's statistics are missing: {error}", file=sys.stderr, flush=True)
                is_told = True

    def _keep(self, values: Mapping[str, float | None]) -> None:
        with self._file.open("a") as lines:
            lines.write(json.dumps({"time": round(time.time(), 3), **values}) + "\n")


def asked(url: str) -> Onefs | None:
    """Return the NAS of an option; ``None`` where the option is empty. Raises `OnefsError`."""
    return Onefs(url) if url else None
