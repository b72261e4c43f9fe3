"""Which place a waiting job has in the queue, by the priorities that Slurm gives."""

from collections import defaultdict
from dataclasses import dataclass

from jupyterhub_gpu_slurm.errors import UnreadableOutput

# Such a job is not considered, whatever its priority: squeue(1), "JOB REASON CODES".
_NOT_CONSIDERED = ("BeginTime", "Dependency", "DependencyNeverSatisfied")
_HELD = "0"


@dataclass(frozen=True)
class QueuePlace:
    """A job's place among those that wait for one partition; the first place is 1."""

    place: int
    waiting: int
    """How many wait for the partition, this one included."""
    partition: str


def places(text: str) -> dict[int, QueuePlace]:
    """Read the answer to `commands.waiting`; a job for several partitions has its best place.

    Jobs on hold, or which wait for others or for an hour, stand in nobody's way and have none.
    Raises `UnreadableOutput`.
    """
    by_partition: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for line in text.splitlines():
        fields = line.split("|", 3)
        # The jobs of an array are one line: 12_[1-40].
        number = fields[0].partition("_")[0]
        if len(fields) != 4 or not number.isdecimal() or not fields[1].isdecimal():
            raise UnreadableOutput(f"squeue printed {line[:100]!r} for a job that waits.")
        _, priority, partition, reason = fields
        if priority != _HELD and reason not in _NOT_CONSIDERED:
            by_partition[partition].append((-int(priority), int(number)))
    found: dict[int, QueuePlace] = {}
    for partition, jobs in by_partition.items():
        for place, (_, job_id) in enumerate(sorted(jobs), start=1):
            known = found.get(job_id)
            if known is None or place < known.place:
                found[job_id] = QueuePlace(place, len(jobs), partition)
    return found
