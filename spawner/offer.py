"""What the cluster offers a user: from its partitions and the user's groups to limits."""

from collections.abc import Iterable

from spawner.allowance import NO_LIMITS, Allowance
from spawner.policy import Limits, PartitionLimit
from spawner.resources import ResourceShape
from spawner.slurm.records import Cluster, Node, Partition


def limits_for(
    groups: Iterable[str],
    cluster: Cluster,
    shape: ResourceShape,
    preferred_partition: str | None = None,
    allowance: Allowance = NO_LIMITS,
) -> Limits:
    """Return what a member of the Unix ``groups`` may have on ``cluster``.

    Slurm's own limits of its partitions know Unix groups only.
    """
    mine = frozenset(groups)
    is_open = [
        partition
        for partition in cluster.partitions
        if partition.is_up
        and partition.nodes
        and (partition.allowed_groups is None or partition.allowed_groups & mine)
        and (allowance.partitions is None or partition.name in allowance.partitions)
    ]
    is_open.sort(key=lambda partition: (partition.name != preferred_partition, _rank(partition)))
    return Limits(
        tuple(
            PartitionLimit(partition.name, _largest(partition, shape), partition.max_time)
            for partition in is_open
        ),
        allowance,
    )


def _rank(partition: Partition) -> tuple[bool, str]:
    return (not partition.is_default, partition.name)


def _largest(partition: Partition, shape: ResourceShape) -> int:
    """Return the most GPUs whose cores and memory, too, are on one node."""
    return max((_largest_on(node, shape) for node in partition.nodes), default=0)


def _largest_on(node: Node, shape: ResourceShape) -> int:
    gpus = node.gpus()
    while gpus > 0:
        needs = shape.resources(gpus)
        if needs.cores <= node.cores and needs.memory_mb <= node.memory_mb:
            break
        gpus -= 1
    return gpus
