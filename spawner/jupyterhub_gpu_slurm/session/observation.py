"""The events of a session for observers: where it runs, since when, and how it ended."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jupyterhub_gpu_slurm.slurm.records import Job


class Ending(enum.Enum):
    """Reason why a session ended; the values are labels of a metric."""

    STOPPED = "stopped"
    """By its user."""
    STOPPED_BY_OTHER = "stopped_by_other"
    """By another user, such as an administrator, or by a service."""
    UNUSED = "unused"
    """Nobody used it for as long as `idle_minutes` says."""
    FINISHED = "finished"
    """Its server ended by itself, as after "Shut Down" in JupyterLab's menu."""
    TIME_LIMIT = "time_limit"
    OUT_OF_MEMORY = "out_of_memory"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    """Its job was put back into the queue, and cancelled: what it was is lost."""
    CANCELLED = "cancelled"
    """Past the hub, with ``scancel``."""
    NODE_FAILED = "node_failed"
    FAILED = "failed"
    NOT_STARTED = "not_started"
    """Cancelled or failed before it could be used."""
    UNKNOWN = "unknown"
    """Slurm does not know the job any more."""


_BY_SLURM_STATE = {
    "BOOT_FAIL": Ending.NODE_FAILED,
    "CANCELLED": Ending.CANCELLED,
    "COMPLETED": Ending.FINISHED,
    "DEADLINE": Ending.TIME_LIMIT,
    "FAILED": Ending.FAILED,
    "NODE_FAIL": Ending.NODE_FAILED,
    "OUT_OF_MEMORY": Ending.OUT_OF_MEMORY,
    "PREEMPTED": Ending.PREEMPTED,
    "REVOKED": Ending.CANCELLED,
    "TIMEOUT": Ending.TIME_LIMIT,
}


def ending_of(job: Job) -> Ending:
    """Return how a job that is over ended, as Slurm says."""
    return _BY_SLURM_STATE.get(job.slurm_state, Ending.UNKNOWN)


@dataclass(frozen=True)
class SessionNews:
    """A session whose job runs, or did: as of one moment."""

    session_id: str
    """Random, and the same from the session's start to its end."""
    user: str
    groups: tuple[str, ...]
    """The user's, JupyterHub's and the system's, when the session was submitted."""
    gpus: int
    job_id: int
    partition: str | None
    node: str | None
    started: datetime | None
    """When Slurm started the job; ``None`` where the job is gone and no hub saw it run."""
    seen: datetime
    """When this was so."""
    ending: Ending | None = None
    """``None``: it runs."""
    ended: datetime | None = None
    """When its job ended, where Slurm says it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What its user had chosen, by the names of the form's fields."""
    name: str = ""
    """Which of the user's sessions it is: JupyterHub's name of the server."""
