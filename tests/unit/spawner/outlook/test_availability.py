from dataclasses import replace
from typing import Any

import pytest

from jupyterhub_gpu_slurm.outlook.availability import (
    AvailabilityCounter,
    availability,
    by_nodes,
    label,
)
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.slurm.records import Cluster, Gres, Node, Partition

SHAPE = ResourceShape()
"""8 cores and 48 GB for each GPU, 2 and 12 GB without."""


def node(*gres: Gres, cores: int = 40, used: int = 0, is_up: bool = True) -> Node:
    """A node of which each used core takes its share of the memory."""
    return Node("n", "n", gres, cores, 384 * 1024, is_up, used, used * 6 * 1024)


def partition(*nodes: Node) -> Partition:
    return Partition("sxm2", True, True, None, None, nodes)


def v100(count: int, used: int = 0) -> Gres:
    return Gres("gpu", "v100", count, used)


@pytest.mark.parametrize(
    ("nodes", "free", "total", "largest_free"),
    [
        ([node(v100(4))], 4, 4, 4),
        ([node(v100(4, 1), used=8), node(v100(4, 2), used=16)], 5, 8, 3),
        ([node(v100(4, 4), used=32)], 0, 4, 0),
        # GPUs are free, but the cores that come with them are not.
        ([node(v100(4, 1), used=30)], 3, 4, 1),
        ([node(v100(4), used=40)], 4, 4, 0),
        ([node(v100(8))], 8, 8, 5),
        ([node(v100(4), is_up=False), node(v100(4, 3), used=24)], 1, 8, 1),
        ([], 0, 0, 0),
    ],
)
def test_what_is_free(nodes: list[Node], free: int, total: int, largest_free: int) -> None:
    found = availability(partition(*nodes), SHAPE)
    assert (found.free, found.total, found.largest_free) == (free, total, largest_free)


def test_a_state_of_the_cluster_is_counted_once() -> None:
    count = AvailabilityCounter(SHAPE)
    first = Cluster((partition(node(v100(4))),))
    assert count.of(first) is count.of(first)
    assert count.of(Cluster((partition(node(v100(4, 3))),)))["sxm2"].free == 1
    assert count.of(first)["sxm2"].free == 4


def test_partitions_of_the_same_nodes_are_counted_once() -> None:
    small = replace(node(v100(4)), name="small")
    nodes = (node(v100(4)), small)
    names = ("sxm2", "urgent", "rest")
    partitions = [replace(partition(*nodes), name=name) for name in names]
    partitions[2] = replace(partitions[2], nodes=(small,))
    counted = AvailabilityCounter(SHAPE).of(Cluster(tuple(partitions)))
    groups = by_nodes(counted.values())
    assert [(names, one.total) for names, one in groups] == [("sxm2, urgent", 8), ("rest", 4)]
    # Who may not use the first one has it counted under the other's name.
    assert [names for names, _ in by_nodes([counted["urgent"]])] == ["urgent"]


def test_each_type_is_counted_by_itself() -> None:
    both = node(Gres("gpu", "a100", 2, 1), Gres("gpu", "t4", 2), used=8)
    found = availability(partition(both, node(v100(4))), SHAPE)
    assert [(kind.type, kind.free, kind.total, kind.largest_free) for kind in found.kinds] == [
        ("a100", 1, 2, 1),
        ("t4", 2, 2, 2),
        ("v100", 4, 4, 4),
    ]
    # One session may have GPUs of both types, where it does not name one.
    assert found.largest_free == 4


@pytest.mark.parametrize(
    ("gpus", "gpu_type", "is_free"),
    [(0, None, True), (2, None, True), (3, None, False), (1, "a100", True), (2, "a100", False)],
)
def test_whether_a_size_is_free(gpus: int, gpu_type: str | None, is_free: bool) -> None:
    found = availability(partition(node(Gres("gpu", "a100", 1)), node(v100(2))), SHAPE)
    assert found.is_free(gpus, gpu_type) is is_free


def test_gpus_without_a_type_are_a_kind_of_their_own() -> None:
    found = availability(partition(node(Gres("gpu", None, 4, 1), Gres("gpu", "t4", 2))), SHAPE)
    assert [(kind.type, kind.free, kind.total) for kind in found.kinds] == [
        (None, 3, 4),
        ("t4", 2, 2),
    ]


def test_shards_are_no_gpus() -> None:
    found = availability(partition(node(Gres("gpu", "l4", 4, 1), Gres("shard", "l4", 16))), SHAPE)
    assert (found.free, found.total) == (3, 4)
    assert (found.shards_free, found.shards_total) == (12, 16)


@pytest.mark.parametrize("shard_type", ["l4", None])
def test_a_gpu_that_jobs_share_is_not_free(shard_type: str | None) -> None:
    shared = node(Gres("gpu", "l4", 4, 1), Gres("shard", shard_type, 16, 2))
    found = availability(partition(shared), SHAPE)
    assert (found.free, found.largest_free) == (1, 1)
    assert found.shards_free == 4


def test_a_gpu_that_cudas_service_shares_is_not_free() -> None:
    found = availability(partition(node(v100(4, 1), Gres("mps", "v100", 400, 2))), SHAPE)
    assert (found.free, found.largest_free) == (1, 1)
    assert (found.shards_free, found.shards_total) == (0, 0)


def test_whole_nodes_are_free_where_nobody_else_is_on_them() -> None:
    nodes = (node(v100(4, 1), used=8), replace(node(v100(2)), name="small"))
    whole = replace(partition(*nodes), name="whole", is_exclusive=True)
    counted = AvailabilityCounter(SHAPE).of(Cluster((partition(*nodes), whole)))
    assert counted["sxm2"].largest_free == 3
    assert (counted["whole"].largest_free, counted["whole"].largest) == (2, 4)
    assert [names for names, _ in by_nodes(counted.values())] == ["sxm2", "whole"]
    busy = availability(replace(whole, nodes=nodes[:1]), SHAPE)
    assert not busy.has_room_without_gpu
    assert busy.could_have_room_without_gpu


@pytest.mark.parametrize(("feature", "largest"), [(None, 4), ("nvlink", 2), ("ib", 0)])
def test_the_nodes_with_a_feature_are_counted_by_themselves(
    feature: str | None, largest: int
) -> None:
    small = replace(node(v100(2)), name="small", features=frozenset({"nvlink"}))
    cluster = Cluster((partition(node(v100(4)), small),))
    found = AvailabilityCounter(SHAPE).with_feature(cluster, "sxm2", feature)
    assert found is not None
    assert found.largest == largest
    assert AvailabilityCounter(SHAPE).with_feature(cluster, "gone", feature) is None


@pytest.mark.parametrize(("used", "has_room"), [(0, True), (38, True), (39, False)])
def test_whether_there_is_room_without_a_gpu(used: int, has_room: bool) -> None:
    found = availability(partition(node(v100(4), used=used)), SHAPE)
    assert found.has_room_without_gpu is has_room


@pytest.mark.parametrize(
    ("gpus", "gpu_type", "expected"),
    [(0, None, True), (4, None, True), (4, "v100", True), (1, "a100", False), (5, None, False)],
)
def test_a_node_is_large_enough_whatever_its_state(
    gpus: int, gpu_type: str | None, expected: bool
) -> None:
    drained = partition(node(v100(4, 4), used=40, is_up=False))
    assert availability(drained, SHAPE).is_large_enough(gpus, gpu_type) is expected


@pytest.mark.parametrize(
    ("limits", "largest"),
    [
        ({}, 5),
        ({"max_cores_per_node": 17}, 2),
        ({"max_memory_mb_per_node": 3 * 48 * 1024}, 3),
        ({"max_cores_per_node": 99}, 5),
    ],
)
def test_a_partition_gives_no_more_of_a_node_than_its_rules_allow(
    limits: dict[str, Any], largest: int
) -> None:
    found = availability(replace(partition(node(v100(8))), **limits), SHAPE)
    assert (found.free, found.largest_free, found.largest) == (8, largest, largest)
    assert found.is_large_enough(largest, "v100")
    assert not found.is_large_enough(largest + 1, "v100")


def test_what_other_partitions_jobs_hold_counts_against_the_node_alone() -> None:
    shared = replace(partition(node(v100(8), used=20)), max_cores_per_node=16)
    assert availability(shared, SHAPE).largest_free == 2


def test_partitions_that_give_more_or_less_of_the_same_nodes_have_a_row_each() -> None:
    whole = partition(node(v100(8)))
    less = replace(whole, name="less", max_cores_per_node=16)
    found = AvailabilityCounter(SHAPE).of(Cluster((whole, less)))
    assert [one.shares_nodes_with for one in found.values()] == ["sxm2", "less"]


def test_no_node_is_large_enough_whose_cores_do_not_do() -> None:
    small = availability(partition(node(v100(4), cores=31)), SHAPE)
    assert small.is_large_enough(3, None)
    assert not small.is_large_enough(4, None)
    assert not availability(partition(node(v100(4), cores=1)), SHAPE).is_large_enough(0, None)


@pytest.mark.parametrize(
    ("gpu_type", "shown"),
    [
        ("v100", "V100"),
        ("a100", "A100"),
        ("rtx6000", "RTX6000"),
        ("nvidia_a100-sxm4-80gb", "A100-SXM4-80GB"),
        ("tesla_v100-sxm2-32gb", "V100-SXM2-32GB"),
        ("a100_80gb_pcie", "A100 80GB PCIe"),
        ("h100_80gb_hbm3", "H100 80GB HBM3"),
        ("rtx_a6000", "RTX A6000"),
        ("rtx_6000_ada_generation", "RTX 6000 Ada Generation"),
        ("geforce_rtx_4090", "GeForce RTX 4090"),
        ("the_big_ones", "the_big_ones"),
        ("1g.10gb", "MIG slice 1g.10gb (10 GB)"),
        ("a100_1g.5gb", "MIG slice 1g.5gb of A100 (5 GB)"),
        ("nvidia_h200_3g.71gb", "MIG slice 3g.71gb of H200 (71 GB)"),
        # As Slurm's gpu/nvml names them: <GPU_type>_<slice_cnt>g.<mem>gb, gpu_nvml.c of 22.05 to
        # 25.05; from 23.02 on with what NVIDIA's library adds to the profile's name.
        (
            "nvidia_a100-sxm4-40gb_1g.5gb+me",
            "MIG slice 1g.5gb+me of A100-SXM4-40GB (5 GB)",
        ),
        (
            "nvidia_h100_80gb_hbm3_1c.3g.40gb",
            "MIG slice 1c.3g.40gb of H100 80GB HBM3 (40 GB)",
        ),
        (None, "GPU"),
    ],
)
def test_what_people_call_a_type(gpu_type: str | None, shown: str) -> None:
    assert label(gpu_type) == shown
