"""The last hour of the job's resource use, in a ring buffer."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from dsportal.session.usage.gpus import GpuFigures, GpuState
from dsportal.session.usage.last_use import WORKING_GPU_PERCENT, Process, increase
from dsportal.session.usage.meter import Held, Reading

EVERY_SECONDS = 10
SAMPLES = 3600 // EVERY_SECONDS + 1
"""An hour from the first to the last."""


@dataclass(frozen=True)
class Sample:
    """Resource use between two readings. ``None``: not known."""

    at: float
    cores: float | None
    memory_bytes: int | None
    read_rate: float | None
    """Bytes a second."""
    write_rate: float | None
    gpus: tuple[GpuFigures, ...]


def sample(reading: Reading, before: Reading | None) -> Sample:
    """Make a sample of two readings."""

    def rate(count: Callable[[Process], float]) -> float | None:
        if before is None or reading.at <= before.at:
            return None
        grown = increase(reading.processes, before.processes, count)
        # Less than before: a process ended, and nobody took over what it had counted.
        return max(0.0, grown) / (reading.at - before.at)

    return Sample(
        at=reading.at,
        cores=rate(lambda process: process.cpu_seconds),
        memory_bytes=reading.memory_bytes,
        read_rate=rate(lambda process: process.read_bytes),
        write_rate=rate(lambda process: process.written_bytes),
        gpus=reading.gpus.gpus,
    )


class History:
    """The samples of the last hour, numbered from the session's start on."""

    def __init__(self, held: Held, length: int = SAMPLES) -> None:
        self._held = held
        self._samples: deque[Sample] = deque(maxlen=length)
        self._count = 0
        self._last: Reading | None = None
        self._gpus: tuple[GpuFigures, ...] = ()
        """As last known: the driver may not answer for a while."""

    def add(self, reading: Reading) -> None:
        """Keep what a reading tells."""
        self._samples.append(sample(reading, self._last))
        self._count += 1
        self._last = reading
        self._gpus = reading.gpus.gpus or self._gpus

    def now(self) -> dict[str, float | int | None]:
        """Give the last sample's processor and memory; ``None`` is not known."""
        last = self._samples[-1] if self._samples else None
        return {
            "cores": last.cores if last else None,
            "memory_bytes": last.memory_bytes if last else None,
        }

    def tell(self, since: int = 0) -> dict[str, Any]:
        """Give what the page shows, from the sample after number ``since`` on.

        A number that was never given, such as that of another session, gives all of them.
        """
        kept = len(self._samples)
        first = max(since, self._count - kept) if since <= self._count else self._count - kept
        samples = list(self._samples)[kept - (self._count - first) :]
        return {
            "first": first + 1,
            "every_seconds": EVERY_SECONDS,
            "held": {"cores": self._held.cores, "memory_bytes": self._held.memory_bytes},
            "gpus": {
                "state": self._last.gpus.state if self._last else GpuState.NONE,
                "each": [self._about(at, gpu) for at, gpu in enumerate(self._gpus)],
            },
            "samples": self._columns(samples),
        }

    def _about(self, at: int, gpu: GpuFigures) -> dict[str, Any]:
        return {
            "name": gpu.name,
            "memory_total_bytes": gpu.memory_total_bytes,
            "unused_seconds": unused_seconds(self._samples, at),
        }

    def _columns(self, samples: Sequence[Sample]) -> dict[str, Any]:
        """Turn them: a list for each figure is a third of the size."""
        return {
            "at": [round(one.at, 1) for one in samples],
            "cores": [None if one.cores is None else round(one.cores, 2) for one in samples],
            "memory_bytes": [one.memory_bytes for one in samples],
            "read_rate": [
                None if one.read_rate is None else round(one.read_rate) for one in samples
            ],
            "write_rate": [
                None if one.write_rate is None else round(one.write_rate) for one in samples
            ],
            "gpus": [
                _gpu_columns([_at(one.gpus, at) for one in samples])
                for at in range(len(self._gpus))
            ],
        }


def _gpu_columns(gpus: Sequence[GpuFigures]) -> dict[str, list[int | None]]:
    return {
        "percent": [gpu.percent for gpu in gpus],
        "memory_bytes": [gpu.memory_bytes for gpu in gpus],
        "celsius": [gpu.celsius for gpu in gpus],
        "watts": [gpu.watts for gpu in gpus],
    }


def _at(gpus: Sequence[GpuFigures], at: int) -> GpuFigures:
    return gpus[at] if at < len(gpus) else GpuFigures()


def unused_seconds(samples: Sequence[Sample], at: int) -> int:
    """Return for how long a GPU has not worked, as far as is known: an hour at most."""
    percents = ((one.at, _at(one.gpus, at).percent) for one in reversed(samples))
    idle = [
        moment
        for moment, _ in takewhile(
            lambda known: known[1] is not None and known[1] < WORKING_GPU_PERCENT, percents
        )
    ]
    return round(idle[0] - idle[-1]) if idle else 0
