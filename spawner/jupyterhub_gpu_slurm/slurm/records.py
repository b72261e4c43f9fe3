"""Jobs, nodes and partitions as records. Unknown is ``None`` or a state, not 0 or empty text."""

import enum
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

# 12_[4-9%2], 12_[1,3-5], 12_[0-9:3]; squeue ends a long one with "..."
_ARRAY = re.compile(r"\d+_\[([^%\]]*)(?:%\d+)?\]?", re.ASCII)
_TASKS = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?", re.ASCII)
SLURM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,127}", re.ASCII)
"""An account, a QOS, a reservation or a node feature that a job's script may hold."""


class JobState(enum.Enum):
    """The states a session's job can be in, as far as the portal tells them apart.

    Slurm's own names: squeue(1), "JOB STATE CODES".
    """

    PENDING = "waiting in the queue"
    RUNNING = "holds its resources, or is being prepared or suspended with them"
    COMPLETING = "has ended; its processes are being cleared away"
    ENDED = "has ended; holds nothing"
    GONE = "Slurm answered and does not know the job (any more)"
    UNKNOWN = "Slurm did not answer, or said what we do not know"

    @property
    def is_over(self) -> bool:
        """Say whether the job will not run (again). ``UNKNOWN`` is not over."""
        return self in _OVER


_OVER = frozenset({JobState.COMPLETING, JobState.ENDED, JobState.GONE})

_STATES = {
    "PENDING": JobState.PENDING,
    "CONFIGURING": JobState.RUNNING,
    "RUNNING": JobState.RUNNING,
    "RESIZING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "STAGE_OUT": JobState.COMPLETING,
    "STOPPED": JobState.RUNNING,
    "SUSPENDED": JobState.RUNNING,
    "REQUEUED": JobState.PENDING,
    "REQUEUE_FED": JobState.PENDING,
    "REQUEUE_HOLD": JobState.PENDING,
    "RESV_DEL_HOLD": JobState.PENDING,
    "SPECIAL_EXIT": JobState.PENDING,
    "COMPLETING": JobState.COMPLETING,
    "BOOT_FAIL": JobState.ENDED,
    "CANCELLED": JobState.ENDED,
    "COMPLETED": JobState.ENDED,
    "DEADLINE": JobState.ENDED,
    "FAILED": JobState.ENDED,
    "NODE_FAIL": JobState.ENDED,
    "OUT_OF_MEMORY": JobState.ENDED,
    "PREEMPTED": JobState.ENDED,
    "REVOKED": JobState.ENDED,
    "TIMEOUT": JobState.ENDED,
    # Not a word of Slurm: it answered, and the job was not among the answers.
    "GONE": JobState.GONE,
}


_NOT_EXECUTING = ("CONFIGURING", "SUSPENDED", "STOPPED")


@dataclass(frozen=True)
class Job:
    """A job as ``squeue`` shows it."""

    job_id: int
    slurm_state: str
    """Slurm's own word, such as ``OUT_OF_MEMORY``; empty where Slurm did not answer."""
    reason: str | None = None
    user: str | None = None
    partition: str | None = None
    node: str | None = None
    """The first node of the job; a session has only one."""
    start: datetime | None = None
    """When it started, or is expected to; Slurm knows the latter after its backfill's next look."""
    end: datetime | None = None
    """When its time is up, or when it ended. Slurm moves it on by the time of a suspension."""
    limit: timedelta | None = None
    """How long it may run; ``None``: as long as it wants, or Slurm does not tell."""

    @property
    def state(self) -> JobState:
        """What Slurm's word means for the portal."""
        if self.slurm_state == "RESV_DEL_HOLD" and self.node is not None:
            # A job that runs, or did: Slurm since 23.11 marks these too, when it starts anew and
            # their user may not use the reservation any more (_validate_job_resv, reservation.c).
            return JobState.UNKNOWN
        return _STATES.get(self.slurm_state, JobState.UNKNOWN)

    @property
    def is_executing(self) -> bool:
        """Whether its processes run: not while its node boots, nor while it is suspended."""
        return self.state is JobState.RUNNING and self.slurm_state not in _NOT_EXECUTING


@dataclass(frozen=True)
class Gres:
    """GPUs, or parts of them, of one type on a node, from ``Gres`` and ``GresUsed``."""

    name: str
    """``gpu``, or for parts of GPUs that several jobs share ``shard`` or ``mps``."""
    type: str | None
    """Slurm's word for the model, such as ``a100`` or, for a slice by MIG, ``1g.10gb``."""
    count: int
    used: int = 0
    """How many of them jobs hold; of parts, of how many GPUs jobs hold some."""


@dataclass(frozen=True)
class Node:
    """A compute node: its size, and what jobs hold of it. Memory is in MiB."""

    name: str
    address: str
    """``NodeAddr``: where it is reached."""
    gres: tuple[Gres, ...]
    cores: int
    memory_mb: int
    is_up: bool
    """Whether it takes new jobs."""
    cores_used: int = 0
    memory_used_mb: int = 0
    state: str = "UNKNOWN"
    """Slurm's own words, such as ``MIXED+DRAIN``."""
    reason: str | None = None
    """Why it takes no new jobs, in an administrator's words."""
    gpus_in_use: frozenset[int] | None = None
    """Which of its GPUs jobs hold, or parts of which; ``None`` where Slurm does not tell."""
    features: frozenset[str] = frozenset()
    """What a job's ``--constraint`` can ask for."""

    def gpus(self, gpu_type: str | None = None) -> int:
        """Return how many GPUs it has, of one type or of all."""
        return sum(kind.count for kind in self._kinds(gpu_type))

    def gpus_free(self, gpu_type: str | None = None) -> int:
        """Return how many of its GPUs no job holds; none where no new job can start.

        A GPU of which a job holds a part is not given to another job as a whole.
        """
        return sum(self.free(kind) for kind in self._kinds(gpu_type))

    @property
    def shards(self) -> int:
        """Into how many parts jobs may share its GPUs (Slurm's ``shard``)."""
        return sum(kind.count for kind in self.gres if kind.name == "shard")

    @property
    def gpus_not_held(self) -> int:
        """How many of its GPUs no job holds, whether it takes new jobs or not."""
        return sum(self._not_held(kind) for kind in self._kinds(None))

    def free(self, kind: Gres) -> int:
        """Return how many of one of its kinds of GPUs no job holds, see `gpus_free`."""
        return self._not_held(kind) if self.is_up else 0

    def _not_held(self, kind: Gres) -> int:
        return max(0, kind.count - kind.used - self._lent(kind.type))

    def _lent(self, gpu_type: str | None) -> int:
        return sum(
            kind.used for kind in self.gres if kind.name != "gpu" and kind.type in (gpu_type, None)
        )

    def _kinds(self, gpu_type: str | None) -> list[Gres]:
        return [
            kind
            for kind in self.gres
            if kind.name == "gpu" and (gpu_type is None or kind.type == gpu_type)
        ]


@dataclass(frozen=True)
class QueuedJob:
    """A job of anybody's that has not ended, as the cluster's queue shows it."""

    job_id: int
    label: str
    """What its owner calls it: with the task of an array, ``12_3`` or ``12_[4-9%2]``."""
    slurm_state: str
    user: str
    partition: str
    nodes: tuple[str, ...]
    gpus: int
    """What it asked for, on all nodes together."""
    reason: str | None
    submitted: datetime | None
    start: datetime | None
    """When it started, or is expected to."""
    end: datetime | None
    name: str
    """Its owner's word. Nothing is to be decided by it."""

    @property
    def tasks(self) -> int:
        """How many jobs it stands for, at least: the tasks of an array that wait are one line."""
        array = _ARRAY.fullmatch(self.label)
        if array is None:
            return 1
        return sum(
            len(range(int(first), int(last or first) + 1, int(step or 1)))
            for first, last, step in _TASKS.findall(array[1])
        )

    @property
    def state(self) -> JobState:
        """What Slurm's word means for the portal."""
        return _STATES.get(self.slurm_state, JobState.UNKNOWN)


@dataclass(frozen=True)
class GpuAllocation:
    """The GPUs that a job holds on one of its nodes."""

    count: int
    indexes: frozenset[int] | None
    """Which ones of the node's; ``None`` where Slurm does not tell."""


@dataclass(frozen=True)
class Partition:
    """A partition and the sizes of its nodes."""

    name: str
    is_default: bool
    is_up: bool
    max_time: timedelta | None
    """``None``: no limit."""
    allowed_groups: frozenset[str] | None
    """Unix groups; ``None``: everybody."""
    nodes: tuple[Node, ...]
    is_root_only: bool = False
    is_hidden: bool = False
    """Whoever knows its name can use it."""
    min_nodes: int = 0
    """How many nodes each of its jobs must have."""
    max_cores_per_node: int | None = None
    """Of one node, for all of its jobs together; ``None``: no limit."""
    max_memory_mb_per_node: int | None = None
    """Of one node, for one of its jobs; ``None``: no limit."""
    needs_reservation: bool = False
    """Whether it takes only jobs of a reservation (``ReqResv``)."""
    is_exclusive: bool = False
    """Whether each job gets whole nodes, which it shares with no other."""


@dataclass(frozen=True)
class Cluster:
    """All partitions, as of one moment."""

    partitions: tuple[Partition, ...]

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        """Every node once, by its name."""
        return {node.name: node for partition in self.partitions for node in partition.nodes}

    def address_of(self, node_name: str) -> str | None:
        """Return where a node is reached, ``None`` if there is no such node."""
        node = self.nodes.get(node_name)
        return None if node is None else node.address

    def gpu_types_of(self, node_name: str) -> list[str]:
        """Return Slurm's words for a node's GPUs; none where they have no types."""
        node = self.nodes.get(node_name)
        types = (kind.type for kind in (node.gres if node else ()) if kind.name == "gpu")
        return list(dict.fromkeys(filter(None, types)))

    def gpus_by_state(self) -> dict[tuple[str, str], int]:
        """Return how many GPUs are free, held and unavailable, by type; ``gpu`` where it has none.

        Those that no job holds are unavailable on a node, or in partitions, that take no jobs.
        """
        counted: Counter[tuple[str, str]] = Counter()
        opened = {node.name for part in self.partitions if part.is_up for node in part.nodes}
        for node in self.nodes.values():
            for kind in node.gres:
                if kind.name == "gpu":
                    free = node.free(kind)
                    held = kind.count - free if node.is_up else min(kind.used, kind.count)
                    if node.name not in opened:
                        free = 0
                    name = kind.type or "gpu"
                    counted[name, "free"] += free
                    counted[name, "held"] += held
                    counted[name, "unavailable"] += kind.count - free - held
        return dict(counted)
