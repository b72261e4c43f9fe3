"""A small cluster for the tests: two nodes of four GPUs, one of them drained, and some jobs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from dsportal.cluster.snapshot import Snapshot
from jupyterhub_gpu_slurm.slurm.records import (
    Cluster,
    GpuAllocation,
    Gres,
    Node,
    Partition,
    QueuedJob,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

NODE = Node(
    name="node1",
    address="node1",
    gres=(Gres("gpu", "v100", 4, 3),),
    cores=40,
    memory_mb=393216,
    is_up=True,
    state="MIXED",
    gpus_in_use=frozenset({0, 1, 2}),
)
DRAINED = replace(
    NODE,
    name="node2",
    gres=(Gres("gpu", "v100", 4, 1),),
    is_up=False,
    state="MIXED+DRAIN",
    reason="fan",
    gpus_in_use=frozenset({3}),
)
ADAS = QueuedJob(
    job_id=1,
    label="1",
    slurm_state="RUNNING",
    user="ada",
    partition="sxm2",
    nodes=("node1",),
    gpus=2,
    reason=None,
    submitted=NOW,
    start=NOW,
    end=NOW + timedelta(hours=1),
    name="portal-ada",
)
BOBS = replace(ADAS, job_id=2, label="2", user="bob", nodes=("node1", "node2"), name="<b>secret")
WAITING = replace(
    BOBS,
    job_id=3,
    label="3_[1-9]",
    slurm_state="PENDING",
    nodes=(),
    gpus=4,
    reason="AssocGrpGRES",
    start=NOW + timedelta(hours=2),
    end=None,
)
SHARES = {
    1: (GpuAllocation(2, frozenset({0, 1})),),
    2: (GpuAllocation(1, frozenset({2})), GpuAllocation(1, frozenset({3}))),
}


def snapshot(
    *jobs: QueuedJob,
    nodes: tuple[Node, ...] = (NODE, DRAINED),
    shares: dict[int, tuple[GpuAllocation, ...]] = SHARES,
) -> Snapshot:
    """Give the cluster with these jobs."""
    partition = Partition("sxm2", True, True, timedelta(hours=12), None, nodes)
    return Snapshot(NOW, Cluster((partition,)), jobs or (ADAS, BOBS, WAITING), shares)
