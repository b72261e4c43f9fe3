"""The cluster's free resources, as far as one session on one node is concerned."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.slurm.records import Cluster, Gres, Node, Partition

_MODEL = re.compile(r"[a-z]{1,4}[0-9]{1,4}[a-z]?", re.ASCII)
# NVIDIA's whole names as Slurm writes them: a100-sxm4-80gb, rtx_6000_ada_generation.
_WHOLE_NAME = re.compile(r"^(nvidia|tesla|geforce|quadro|rtx|titan)[_-]|\d+gb(_|$)", re.ASCII)
_NOT_IN_CAPITALS = {
    word.lower(): word for word in ("Ada", "Generation", "GeForce", "PCIe", "Quadro", "Super", "Ti")
}
# How NVIDIA names a slice of a GPU (MIG): compute slices, then memory; "+me" and the like are what
# else is in it, "1c." is a part of its compute slices.
_MIG = re.compile(r"((?:\d+c\.)?\d+g\.(\d+)gb(?:[.+-][a-z.]+)?)$", re.ASCII)
_MAKER = re.compile(r"^(nvidia|tesla)[_-]", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class KindOfGpu:
    """Free and total GPUs of one type in a partition."""

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
    """Free resources of a partition. Counts are GPUs, or MIG slices, which Slurm counts as GPUs."""

    partition: str
    kinds: tuple[KindOfGpu, ...]
    free: int
    total: int
    largest_free: int
    largest: int
    has_room_without_gpu: bool
    could_have_room_without_gpu: bool
    """As ``largest``: if the partition were empty."""
    shards_free: int
    """At least: those of GPUs that no job uses. Slurm does not always tell of the others."""
    shards_total: int
    """Parts of GPUs that several jobs share (``shard``); sessions get whole ones."""
    shares_nodes_with: str = ""
    """The first partition that has exactly these nodes, and as much of each, itself or another: one
    row for them all."""

    def is_free(self, gpus: int, gpu_type: str | None) -> bool:
        """Say whether there is room now for one session with so many GPUs of a type, or of any."""
        if gpus == 0:
            return self.has_room_without_gpu
        return gpus <= self.largest_free_of(gpu_type)

    def largest_free_of(self, gpu_type: str | None) -> int:
        """Return the most GPUs of a type, or of any, that one session could have now."""
        return (self if gpu_type is None else self._of(gpu_type)).largest_free

    def is_large_enough(self, gpus: int, gpu_type: str | None) -> bool:
        """Say whether a node, free or not, in service or not, has so much."""
        if gpus == 0:
            return self.could_have_room_without_gpu
        return gpus <= (self if gpu_type is None else self._of(gpu_type)).largest

    def _of(self, gpu_type: str) -> KindOfGpu:
        none = KindOfGpu(gpu_type, label(gpu_type), 0, 0, 0, 0)
        return next((kind for kind in self.kinds if kind.type == gpu_type), none)


class AvailabilityCounter:
    """Counts each state of the cluster once, however many look at it."""

    def __init__(self, shape: ResourceShape) -> None:
        self._shape = shape
        self._cluster: Cluster | None = None
        self._counted: dict[str, Availability] = {}
        self._with_feature: dict[tuple[str, str], Availability | None] = {}

    def of(self, cluster: Cluster) -> Mapping[str, Availability]:
        """Return what each partition has free, by the partition's name."""
        if cluster is not self._cluster:
            first: dict[tuple[frozenset[str], int | None, int | None, bool], str] = {}
            self._counted, self._with_feature = {}, {}
            for partition in cluster.partitions:
                nodes = frozenset(node.name for node in partition.nodes)
                limits = _limits_per_node(partition)
                shared_with = first.setdefault((nodes, *limits), partition.name)
                counted = availability(partition, self._shape)
                self._counted[partition.name] = replace(counted, shares_nodes_with=shared_with)
            self._cluster = cluster
        return self._counted

    def with_feature(
        self, cluster: Cluster, partition: str, feature: str | None
    ) -> Availability | None:
        """Return what a partition's nodes with a feature have free; ``None``: of all its nodes."""
        counted = self.of(cluster)
        if feature is None:
            return counted.get(partition)
        key = partition, feature
        if key not in self._with_feature:
            self._with_feature[key] = next(
                (
                    availability(_only(one, feature), self._shape)
                    for one in cluster.partitions
                    if one.name == partition
                ),
                None,
            )
        return self._with_feature[key]


def _only(partition: Partition, feature: str) -> Partition:
    nodes = tuple(node for node in partition.nodes if feature in node.features)
    return replace(partition, nodes=nodes)


def availability(partition: Partition, shape: ResourceShape) -> Availability:
    """Count what a partition has free."""
    limits = _limits_per_node(partition)
    places = [_fit(node, shape, *limits) for node in partition.nodes]
    kinds: dict[str | None, list[_Block]] = {}
    for place in places:
        for gpu_type, block in place.kinds:
            kinds.setdefault(gpu_type, []).append(block)
    blocks = [place.gpus for place in places]
    return Availability(
        partition=partition.name,
        kinds=tuple(
            KindOfGpu(
                type=gpu_type,
                label=label(gpu_type),
                free=sum(block.free for block in found),
                total=sum(block.total for block in found),
                largest_free=max(block.largest_free for block in found),
                largest=max(block.largest for block in found),
            )
            for gpu_type, found in sorted(kinds.items(), key=lambda item: item[0] or "")
        ),
        free=sum(block.free for block in blocks),
        total=sum(block.total for block in blocks),
        largest_free=max((block.largest_free for block in blocks), default=0),
        largest=max((block.largest for block in blocks), default=0),
        has_room_without_gpu=any(place.has_room_without_gpu for place in places),
        could_have_room_without_gpu=any(place.could_have_room_without_gpu for place in places),
        shards_free=sum(place.shards_free for place in places),
        shards_total=sum(place.shards_total for place in places),
    )


def _limits_per_node(partition: Partition) -> tuple[int | None, int | None, bool]:
    return (
        partition.max_cores_per_node,
        partition.max_memory_mb_per_node,
        partition.is_exclusive,
    )


def by_nodes(found: Iterable[Availability]) -> list[tuple[str, Availability]]:
    """Return what there is with the names of the partitions that have it: same nodes, once.

    The form's script does the same.
    """
    groups: dict[str, list[Availability]] = {}
    for one in found:
        groups.setdefault(one.shares_nodes_with or one.partition, []).append(one)
    return [(", ".join(one.partition for one in group), group[0]) for group in groups.values()]


def label(gpu_type: str | None) -> str:
    """Return what people call a type of GPU: ``V100``, ``GPU``.

    Of a slice, with its memory: ``MIG slice 1g.10gb of A100 (10 GB)``.
    """
    if gpu_type is None:
        return "GPU"
    mig = _MIG.search(gpu_type)
    if mig is None:
        return _model(gpu_type)
    model = gpu_type[: mig.start()].strip("_-. ")
    of_model = f" of {_model(model)}" if model else ""
    return f"MIG slice {mig[1]}{of_model} ({mig[2]} GB)"


def _model(gpu_type: str) -> str:
    """Write a model as NVIDIA does: ``A100-SXM4-80GB``; a site's own word stays as it is."""
    if _MODEL.fullmatch(gpu_type):
        return gpu_type.upper()
    if not _WHOLE_NAME.search(gpu_type):
        return gpu_type
    words = _MAKER.sub("", gpu_type).split("_")
    return " ".join(_NOT_IN_CAPITALS.get(word, word.upper()) for word in words)


@dataclass(frozen=True)
class _Block:
    """GPUs of one node. The largest ones are what one session could have of them."""

    free: int
    total: int
    largest_free: int
    largest: int


@dataclass(frozen=True)
class _NodeFit:
    """A node, as far as sessions on it are concerned."""

    kinds: tuple[tuple[str | None, _Block], ...]
    gpus: _Block
    has_room_without_gpu: bool
    could_have_room_without_gpu: bool
    shards_free: int
    shards_total: int


# A node may be in several partitions, and most are as they were at the last look.
@lru_cache(maxsize=8192)
def _fit(
    node: Node,
    shape: ResourceShape,
    max_cores: int | None,
    max_memory_mb: int | None,
    is_exclusive: bool,
) -> _NodeFit:
    cores = min(node.cores, max_cores or node.cores)
    memory_mb = min(node.memory_mb, max_memory_mb or node.memory_mb)
    cores_free = min(cores, node.cores - node.cores_used)
    if is_exclusive and node.cores_used:
        cores_free = 0
    memory_free_mb = min(memory_mb, node.memory_mb - node.memory_used_mb)
    fit_now = shape.most_gpus(cores_free, memory_free_mb)
    fit = shape.most_gpus(cores, memory_mb)

    def block(kinds: list[Gres]) -> _Block:
        free, total = sum(map(node.free, kinds)), sum(kind.count for kind in kinds)
        return _Block(free, total, min(free, fit_now), min(total, fit))

    gpus = [kind for kind in node.gres if kind.name == "gpu"]
    shards = [kind for kind in node.gres if kind.name == "shard"]
    needs = shape.resources(0)
    return _NodeFit(
        # A node names each type once, see `parsing.gres`.
        kinds=tuple((kind.type, block([kind])) for kind in gpus),
        gpus=block(gpus),
        has_room_without_gpu=(
            node.is_up and needs.cores <= cores_free and needs.memory_mb <= memory_free_mb
        ),
        could_have_room_without_gpu=needs.cores <= cores and needs.memory_mb <= memory_mb,
        shards_free=sum(_shards_free(node, kind) for kind in shards),
        shards_total=node.shards,
    )


def _shards_free(node: Node, shards: Gres) -> int:
    gpus = node.gpus(shards.type)
    return shards.count * node.gpus_free(shards.type) // gpus if gpus else 0
