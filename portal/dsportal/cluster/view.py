"""Rows of the cluster as one viewer may see it, for the API and for the page.

Names of users and of jobs are their owners' and the admins' to see, unless the site's settings say
otherwise. They are left out here, so no page or script has to hide them.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from typing_extensions import TypedDict

from dsportal.cluster.snapshot import Gpu, Snapshot
from jupyterhub_gpu_slurm.outlook.availability import label
from jupyterhub_gpu_slurm.session.reasons import reason_of
from jupyterhub_gpu_slurm.slurm.records import JobState, Node, Partition, QueuedJob

GpuState = Literal["free", "mine", "others", "down"]

_YOURS = (
    (re.compile(r"\byou, or one of your programs, put it on hold\b"), "its owner put it on hold"),
    (re.compile(r"\byou are at your limit\b"), "its owner is at the limit"),
    (re.compile(r"\byour\b"), "its owner's"),
)


@dataclass(frozen=True)
class Viewer:
    """The user who looks at the page or asks the API."""

    name: str | None
    """``None``: nobody whose jobs could be here."""
    sees_names: bool
    """Whether others' names are shown."""


class GpuRow(TypedDict):
    """A GPU of a node."""

    index: int
    type: str | None
    state: GpuState
    user: str | None
    job_id: int | None


class NodeRow(TypedDict):
    """A compute node. Memory is in MiB."""

    name: str
    state: str
    is_up: bool
    reason: str | None
    partitions: list[str]
    cores: int
    cores_used: int
    memory_mb: int
    memory_used_mb: int
    gpus: list[GpuRow]
    shards: int
    """Into how many parts jobs may share its GPUs; 0 where Slurm gives whole ones only."""


class GpuCount(TypedDict):
    """Total number of GPUs, and the number that a new job could have."""

    total: int
    free: int


class PartitionRow(TypedDict):
    """A partition and its GPUs."""

    name: str
    is_default: bool
    is_up: bool
    max_seconds: int | None
    gpus: GpuCount
    nodes: list[str]


class JobRow(TypedDict):
    """A job in the queue. Times are seconds since 1970."""

    id: str
    job_id: int
    name: str | None
    user: str | None
    is_mine: bool
    is_session: bool
    state: str
    reason: str | None
    partition: str
    gpus: int
    nodes: list[str]
    submitted: float | None
    started: float | None
    expected_start: float | None
    ends: float | None


def node_row(snapshot: Snapshot, node: Node, viewer: Viewer) -> NodeRow:
    """Show a node."""
    takes_jobs = snapshot.takes_jobs(node)
    return {
        "name": node.name,
        "state": node.state,
        "is_up": node.is_up,
        "reason": node.reason,
        "partitions": [partition.name for partition in snapshot.partitions_of[node.name]],
        "cores": node.cores,
        "cores_used": node.cores_used,
        "memory_mb": node.memory_mb,
        "memory_used_mb": node.memory_used_mb,
        "gpus": [_gpu_row(gpu, viewer, takes_jobs=takes_jobs) for gpu in snapshot.gpus[node.name]],
        "shards": node.shards,
    }


def _gpu_row(gpu: Gpu, viewer: Viewer, *, takes_jobs: bool) -> GpuRow:
    is_mine = gpu.job is not None and gpu.job.user == viewer.name
    is_shown = gpu.job is not None and (is_mine or viewer.sees_names)
    return {
        "index": gpu.index,
        "type": None if gpu.type is None else label(gpu.type),
        "state": gpu_state(gpu, viewer, takes_jobs=takes_jobs),
        "user": gpu.job.user if gpu.job and is_shown else None,
        "job_id": gpu.job.job_id if gpu.job and is_shown else None,
    }


def gpu_state(gpu: Gpu, viewer: Viewer, *, takes_jobs: bool) -> GpuState:
    """Say what a GPU is to a viewer. One in use is somebody's, also on a closed node."""
    if gpu.job is not None and gpu.job.user == viewer.name:
        return "mine"
    if gpu.is_in_use:
        return "others"
    return "free" if takes_jobs else "down"


def count(snapshot: Snapshot, nodes: tuple[Node, ...]) -> GpuCount:
    """Count the GPUs of some nodes."""
    gpus = [(node, gpu) for node in nodes for gpu in snapshot.gpus[node.name]]
    return {
        "total": len(gpus),
        "free": sum(snapshot.takes_jobs(node) and not gpu.is_in_use for node, gpu in gpus),
    }


def partition_row(snapshot: Snapshot, partition: Partition) -> PartitionRow:
    """Show a partition. Of a closed one, a new job can have no GPU."""
    gpus = count(snapshot, partition.nodes)
    return {
        "name": partition.name,
        "is_default": partition.is_default,
        "is_up": partition.is_up,
        "max_seconds": (
            None if partition.max_time is None else round(partition.max_time.total_seconds())
        ),
        "gpus": gpus if partition.is_up else {**gpus, "free": 0},
        "nodes": [node.name for node in partition.nodes],
    }


def job_row(snapshot: Snapshot, job: QueuedJob, viewer: Viewer, mark: str) -> JobRow:
    """Show a job; ``mark`` is what the names of this hub's sessions begin with."""
    is_mine = job.user == viewer.name
    is_shown = is_mine or viewer.sees_names
    is_pending = job.state is JobState.PENDING
    shares = snapshot.shares.get(job.job_id)
    expected = job.start if job.start and job.start > snapshot.as_of else None
    return {
        "id": job.label,
        "job_id": job.job_id,
        "name": job.name[:100] if is_shown else None,
        "user": job.user if is_shown else None,
        "is_mine": is_mine,
        "is_session": job.name.startswith(f"{mark}-"),
        "state": job.slurm_state,
        "reason": waits_because(job, is_mine) if is_pending else None,
        "partition": job.partition,
        "gpus": sum(share.count for share in shares) if shares else job.gpus,
        "nodes": list(job.nodes),
        "submitted": _seconds(job.submitted),
        "started": None if is_pending else _seconds(job.start),
        "expected_start": _seconds(expected) if is_pending else None,
        "ends": None if is_pending else _seconds(job.end),
    }


def waits_because(job: QueuedJob, is_mine: bool) -> str:
    """Say why a job waits, to its owner or about it."""
    reason = reason_of(job.reason or "None")
    if reason is None:
        return f"Slurm says: {job.reason}"
    words = reason.why
    if not is_mine:
        for pattern, others in _YOURS:
            words = pattern.sub(others, words)
    return words[0].upper() + words[1:]


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
