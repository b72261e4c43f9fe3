"""A user's limits on this cluster, from its partitions and the user's groups."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from jupyterhub_gpu_slurm.options.allowance import NO_LIMITS, Allowance
from jupyterhub_gpu_slurm.options.policy import Limits, PartitionLimit
from jupyterhub_gpu_slurm.outlook.availability import Availability, AvailabilityCounter
from jupyterhub_gpu_slurm.slurm.records import Cluster, Partition

NO_IMAGES: Mapping[str, str] = MappingProxyType({})


def limits_for(
    groups: Iterable[str],
    cluster: Cluster,
    count: AvailabilityCounter,
    preferred_partition: str | None = None,
    allowance: Allowance = NO_LIMITS,
    images: Mapping[str, str] = NO_IMAGES,
    named: Collection[str] = (),
) -> Limits:
    """Return what a member of the Unix ``groups`` may have on ``cluster``.

    A partition that is hidden, or whose jobs must have several nodes, is offered where the site
    names it: as preferred, in a table of limits, or among those ``named`` elsewhere. One that takes
    only jobs of a reservation, to those whom the site grants one. Which accounts a partition takes
    only Slurm knows: its lists are hierarchical in 24.11. ``images``: name -> title.
    """
    mine = frozenset(groups)
    known = {preferred_partition, *(allowance.partitions or ()), *named}
    has_reservation = bool(allowance.reservation or allowance.reservations)
    counted = count.of(cluster)
    is_open = [
        partition
        for partition in cluster.partitions
        if partition.is_up
        and partition.nodes
        and not partition.is_root_only
        and (partition.name in known or not (partition.is_hidden or partition.min_nodes > 1))
        and (has_reservation or not partition.needs_reservation)
        and (partition.allowed_groups is None or partition.allowed_groups & mine)
        and (allowance.partitions is None or partition.name in allowance.partitions)
    ]
    is_open.sort(
        key=lambda partition: (
            partition.name != preferred_partition,
            # Without a choice of the user's, Slurm would refuse a session there.
            partition.needs_reservation and not allowance.reservation,
            _rank(partition),
        )
    )
    return Limits(
        tuple(_limit(partition, counted[partition.name]) for partition in is_open),
        allowance,
        images,
    )


def _rank(partition: Partition) -> tuple[bool, str]:
    return (not partition.is_default, partition.name)


def _limit(partition: Partition, has: Availability) -> PartitionLimit:
    return PartitionLimit(
        partition.name,
        has.largest,
        partition.max_time,
        tuple((kind.type, kind.largest) for kind in has.kinds if kind.type is not None),
        frozenset().union(*(node.features for node in partition.nodes)),
        partition.needs_reservation,
    )
