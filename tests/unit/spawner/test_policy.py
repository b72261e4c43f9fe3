from datetime import timedelta

import pytest

from spawner.errors import OverLimit
from spawner.offer import limits_for
from spawner.options import SessionRequest
from spawner.policy import AcceptedRequest, Defaults, Limits, PartitionLimit, accept
from spawner.resources import Resources, ResourceShape
from spawner.slurm.records import Cluster, Gres, Node, Partition

SHAPE = ResourceShape()


def node(
    name: str = "node001", gpus: int = 4, cores: int = 40, memory_mb: int = 384 * 1024
) -> Node:
    return Node(name, "127.0.0.1", (Gres("gpu", "v100", gpus),), cores, memory_mb, is_up=True)


def partition(
    name: str,
    *nodes: Node,
    is_default: bool = False,
    is_up: bool = True,
    max_time: timedelta | None = timedelta(hours=12),
    groups: frozenset[str] | None = None,
) -> Partition:
    return Partition(name, is_default, is_up, max_time, groups, nodes or (node(),))


def test_the_clusters_default_partition_is_offered_first() -> None:
    cluster = Cluster((partition("a"), partition("sxm2", is_default=True)))
    assert [limit.name for limit in limits_for([], cluster, SHAPE).partitions] == ["sxm2", "a"]


def test_the_sites_default_partition_goes_before_the_clusters() -> None:
    cluster = Cluster((partition("a"), partition("sxm2", is_default=True)))
    limits = limits_for([], cluster, SHAPE, preferred_partition="a")
    assert [limit.name for limit in limits.partitions] == ["a", "sxm2"]


def test_a_partition_of_other_groups_is_not_offered() -> None:
    cluster = Cluster((partition("a", groups=frozenset({"admins"})), partition("b")))
    assert [limit.name for limit in limits_for(["users"], cluster, SHAPE).partitions] == ["b"]
    assert len(limits_for(["users", "admins"], cluster, SHAPE).partitions) == 2


def test_a_closed_partition_is_not_offered() -> None:
    assert limits_for([], Cluster((partition("a", is_up=False),)), SHAPE).partitions == ()


@pytest.mark.parametrize(
    ("one_node", "expected"),
    [
        (node(gpus=4), 4),
        (node(gpus=0), 0),
        (node(gpus=8, cores=40), 5),
        (node(gpus=8, cores=64, memory_mb=200 * 1024), 4),
    ],
)
def test_the_largest_session_has_its_cores_and_memory_on_the_node_too(
    one_node: Node, expected: int
) -> None:
    limits = limits_for([], Cluster((partition("a", one_node),)), SHAPE)
    assert limits.partitions[0].max_gpus == expected


def test_nodes_of_two_sizes_give_the_larger() -> None:
    cluster = Cluster((partition("a", node(gpus=2), node("node002", gpus=4)),))
    assert limits_for([], cluster, SHAPE).max_gpus == 4


LIMITS = Limits(
    (
        PartitionLimit("sxm2", 4, timedelta(hours=12)),
        PartitionLimit("short", 2, timedelta(hours=1)),
        PartitionLimit("long", 1, None),
    )
)


def test_gaps_are_filled_with_the_defaults() -> None:
    accepted = accept(SessionRequest(), LIMITS, SHAPE, Defaults())
    assert accepted == AcceptedRequest(Resources(1, 8, 49152), timedelta(hours=8), "sxm2")


def test_the_default_time_is_cut_to_the_partitions() -> None:
    accepted = accept(SessionRequest(partition="short"), LIMITS, SHAPE, Defaults())
    assert accepted.time == timedelta(hours=1)


def test_a_partition_without_a_limit_takes_any_time() -> None:
    request = SessionRequest(partition="long", time=timedelta(days=30))
    assert accept(request, LIMITS, SHAPE, Defaults()).time == timedelta(days=30)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (SessionRequest(gpus=5), "at most 4"),
        (SessionRequest(gpus=3, partition="short"), "at most 2"),
        (SessionRequest(time=timedelta(hours=13)), "at most 12"),
        (SessionRequest(partition="secret"), "not open to you"),
    ],
)
def test_more_than_a_partition_gives_is_refused(request_: SessionRequest, words: str) -> None:
    with pytest.raises(OverLimit, match=words):
        accept(request_, LIMITS, SHAPE, Defaults())


def test_without_any_partition_nothing_is_accepted() -> None:
    with pytest.raises(OverLimit, match="No partition"):
        accept(SessionRequest(), Limits(()), SHAPE, Defaults())
