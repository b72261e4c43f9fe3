"""The position of a waiting job in the queue, by Slurm's priorities."""

import re
from collections import defaultdict
from dataclasses import dataclass

from jupyterhub_gpu_slurm.errors import UnreadableOutput

# Such a job is not considered, whatever its priority: squeue(1), "JOB REASON CODES".
_NOT_CONSIDERED = ("BeginTime", "Dependency", "DependencyNeverSatisfied")
_HELD = "0"


@dataclass(frozen=True)
class QueuePosition:
    """A job's position among those that wait for one partition; the first is 1."""

    position: int
    waiting: int
    """How many wait for the partition, this one included."""
    partition: str


def queue_positions(text: str) -> dict[int, QueuePosition]:
    """Read the answer to `commands.waiting`; a job for several partitions has its best position.

    Jobs on hold, or which wait for others or for an hour, stand in nobody's way and have none.
    Raises `UnreadableOutput`.
    """
    by_partition: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for line in text.splitlines():
        fields = line.split("|", 3)
        # The jobs of an array are one line, 12_[1-40]; a heterogeneous job has several: 13+0, 13+1.
        number = re.split(r"[_+]", fields[0], maxsplit=1)[0]
        if len(fields) != 4 or not number.isdecimal() or not fields[1].isdecimal():
            raise UnreadableOutput(f"squeue printed {line[:100]!r} for a job that waits.")
        _, priority, partition, reason = fields
        if priority != _HELD and reason not in _NOT_CONSIDERED:
            by_partition[partition].append((-int(priority), int(number)))
    found: dict[int, QueuePosition] = {}
    for partition, jobs in by_partition.items():
        for position, (_, job_id) in enumerate(sorted(jobs), start=1):
            known = found.get(job_id)
            if known is None or position < known.position:
                found[job_id] = QueuePosition(position, len(jobs), partition)
    return found
