"""The cluster at one moment, as Slurm told it: the same for all who look."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from jupyterhub_gpu_slurm.slurm.records import Cluster, GpuAllocation, Node, Partition, QueuedJob


@dataclass(frozen=True)
class Gpu:
    """A GPU of a node, and the job that holds it."""

    index: int
    type: str | None
    is_in_use: bool
    job: QueuedJob | None
    """``None``: no job, or Slurm does not tell which."""


@dataclass(frozen=True)
class Snapshot:
    """State of the cluster, as Slurm reported it in one round of queries."""

    as_of: datetime
    cluster: Cluster
    jobs: tuple[QueuedJob, ...]
    shares: Mapping[int, tuple[GpuAllocation, ...]]
    """Which GPUs a job holds, on each of its nodes in turn. Empty where Slurm does not tell."""

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node once, by name."""
        found = self.cluster.nodes
        return tuple(found[name] for name in sorted(found, key=_by_number))

    @property
    def hides_jobs(self) -> bool:
        """Whether jobs hold cores, and none is told: as where Slurm has ``PrivateData=jobs``."""
        return not self.jobs and any(node.cores_used for node in self.nodes)

    @cached_property
    def partitions_of(self) -> Mapping[str, tuple[Partition, ...]]:
        """The partitions of each node."""
        found: dict[str, tuple[Partition, ...]] = {}
        for partition in self.cluster.partitions:
            for node in partition.nodes:
                found[node.name] = (*found.get(node.name, ()), partition)
        return found

    def takes_jobs(self, node: Node) -> bool:
        """Say whether a new job can start on a node: it is in service, and a partition is open."""
        return node.is_up and any(one.is_up for one in self.partitions_of[node.name])

    @cached_property
    def gpus(self) -> Mapping[str, tuple[Gpu, ...]]:
        """The GPUs of each node."""
        return {node.name: tuple(gpus_of(node, self._on[node.name])) for node in self.nodes}

    @cached_property
    def _on(self) -> Mapping[str, list[tuple[QueuedJob, GpuAllocation | None]]]:
        found: dict[str, list[tuple[QueuedJob, GpuAllocation | None]]] = {
            node.name: [] for node in self.nodes
        }
        for job in self.jobs:
            shares = self.shares.get(job.job_id, ())
            # A job of which both questions do not tell the same has changed between them.
            told = shares if len(shares) == len(job.nodes) else (None,) * len(job.nodes)
            for name, share in zip(job.nodes, told, strict=True):
                if name in found:
                    found[name].append((job, share))
        return found


def gpus_of(node: Node, jobs: list[tuple[QueuedJob, GpuAllocation | None]]) -> Iterator[Gpu]:
    """Give a node's GPUs in their order.

    Where Slurm does not say which ones are held, those held come first, and by whom is open.
    """
    types = [kind.type for kind in node.gres if kind.name == "gpu" for _ in range(kind.count)]
    used = node.gpus_in_use
    if used is None:
        used = frozenset(range(len(types) - node.gpus_not_held))
    holders: dict[int, list[QueuedJob]] = {}
    for job, share in jobs:
        for index in (share.indexes if share else None) or ():
            holders.setdefault(index, []).append(job)
    for index, gpu_type in enumerate(types):
        of = holders.get(index, [])
        # Parts of one GPU can be several jobs'.
        holder = of[0] if len(of) == 1 else None
        yield Gpu(index, gpu_type, index in used or bool(of), holder)


def _by_number(name: str) -> tuple[str, int, str]:
    """Put node10 after node9."""
    head = name.rstrip("0123456789")
    number = name[len(head) :]
    return head, int(number or 0), name
