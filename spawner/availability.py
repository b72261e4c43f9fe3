"""What the cluster has free now, as far as one session on one node is concerned."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from spawner.resources import ResourceShape
from spawner.slurm.records import Cluster, Gres, Node, Partition

# How NVIDIA names a slice of a GPU (MIG): compute slices, then memory.
_MODEL = re.compile(r"[a-z]{1,4}[0-9]{1,4}[a-z]?", re.ASCII)
_MIG = re.compile(r"(\d+g\.\d+gb)(?:\.|\+|$)", re.ASCII)


@dataclass(frozen=True)
class KindOfGpu:
    """One type of GPU in a partition."""

    type: str | None
    """Slurm's word, which a request can name; ``None`` where the nodes give none."""
    label: str
    free: int
    total: int
    largest_free: int
    """The most that one session could have now: on one node, with its cores and memory."""
    largest: int
    """The most that one session could have if the partition were empty."""


@dataclass(frozen=True)
class Availability:
    """What one partition has. Counts are GPUs (or MIG slices, which Slurm counts as GPUs)."""

    partition: str
    kinds: tuple[KindOfGpu, ...]
    free: int
    total: int
    largest_free: int
    has_room_without_gpu: bool
    shards_free: int
    """At least: those of GPUs that no job uses. Slurm does not always tell of the others."""
    shards_total: int
    """Parts of GPUs that several jobs share (``shard``); sessions get whole ones."""


class Count:
    """Counts each state of the cluster once, however many look at it."""

    def __init__(self, shape: ResourceShape) -> None:
        self._shape = shape
        self._cluster: Cluster | None = None
        self._counted: dict[str, Availability] = {}

    def of(self, cluster: Cluster) -> Mapping[str, Availability]:
        """Return what each partition has free, by the partition's name."""
        if cluster is not self._cluster:
            self._counted = {
                partition.name: availability(partition, self._shape)
                for partition in cluster.partitions
            }
            self._cluster = cluster
        return self._counted


def availability(partition: Partition, shape: ResourceShape) -> Availability:
    """Count what a partition has free."""
    nodes = partition.nodes
    types = sorted({kind.type or "" for node in nodes for kind in node.gres if kind.name == "gpu"})
    kinds = tuple(_kind(word or None, nodes, shape) for word in types)
    shards = [(node, kind) for node in nodes for kind in node.gres if kind.name == "shard"]
    return Availability(
        partition=partition.name,
        kinds=kinds,
        free=sum(node.gpus_free() for node in nodes),
        total=sum(node.gpus() for node in nodes),
        largest_free=largest_free(nodes, shape),
        has_room_without_gpu=any(_fits(node, 0, shape) for node in nodes),
        shards_free=sum(_shards_free(node, kind) for node, kind in shards),
        shards_total=sum(kind.count for _, kind in shards),
    )


def as_json(found: Availability) -> dict[str, object]:
    """Return what the form's script reads of one partition."""
    return asdict(found)


def largest(nodes: Iterable[Node], shape: ResourceShape, gpu_type: str | None = None) -> int:
    """Return the most GPUs whose cores and memory, too, are on one node, free or not."""
    return max((_largest_on(node, shape, gpu_type) for node in nodes), default=0)


def is_large_enough(
    partition: Partition, gpus: int, shape: ResourceShape, gpu_type: str | None = None
) -> bool:
    """Say whether a node of the partition, free or not, in service or not, has so much."""
    needs = shape.resources(gpus)
    return any(
        gpus <= node.gpus(gpu_type)
        and needs.cores <= node.cores
        and needs.memory_mb <= node.memory_mb
        for node in partition.nodes
    )


def largest_free(nodes: Iterable[Node], shape: ResourceShape, gpu_type: str | None = None) -> int:
    """Return the most GPUs that are free on one node, with the cores and memory they come with."""
    return max((_largest_free_on(node, shape, gpu_type) for node in nodes), default=0)


def label(gpu_type: str | None) -> str:
    """Return what people call a type of GPU: ``V100``, ``MIG slice 1g.10gb of A100``, ``GPU``."""
    if gpu_type is None:
        return "GPU"
    mig = _MIG.search(gpu_type)
    if mig is None:
        return gpu_type.upper() if _MODEL.fullmatch(gpu_type) else gpu_type
    model = gpu_type[: mig.start()].strip("_-. ")
    return f"MIG slice {mig.group(1)}" + (f" of {model.upper()}" if model else "")


def _kind(gpu_type: str | None, nodes: tuple[Node, ...], shape: ResourceShape) -> KindOfGpu:
    # Where nodes give no type, a request cannot name one.
    if gpu_type is None:
        nodes = tuple(
            node
            for node in nodes
            if any(kind.type is None for kind in node.gres if kind.name == "gpu")
        )
    return KindOfGpu(
        type=gpu_type,
        label=label(gpu_type),
        free=sum(node.gpus_free(gpu_type) for node in nodes),
        total=sum(node.gpus(gpu_type) for node in nodes),
        largest_free=largest_free(nodes, shape, gpu_type),
        largest=largest(nodes, shape, gpu_type),
    )


def _largest_on(node: Node, shape: ResourceShape, gpu_type: str | None) -> int:
    gpus = node.gpus(gpu_type)
    while gpus > 0:
        needs = shape.resources(gpus)
        if needs.cores <= node.cores and needs.memory_mb <= node.memory_mb:
            break
        gpus -= 1
    return gpus


def _largest_free_on(node: Node, shape: ResourceShape, gpu_type: str | None) -> int:
    gpus = node.gpus_free(gpu_type)
    while gpus > 0 and not _fits(node, gpus, shape):
        gpus -= 1
    return gpus


def _shards_free(node: Node, shards: Gres) -> int:
    gpus = node.gpus(shards.type)
    return shards.count * node.gpus_free(shards.type) // gpus if gpus else 0


def _fits(node: Node, gpus: int, shape: ResourceShape) -> bool:
    needs = shape.resources(gpus)
    return (
        node.is_up
        and needs.cores <= node.cores - node.cores_used
        and needs.memory_mb <= node.memory_mb - node.memory_used_mb
    )
