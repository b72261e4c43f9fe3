"""The progress messages of a starting session on the spawn page."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from jupyterhub_gpu_slurm.session import endings
from jupyterhub_gpu_slurm.session.reasons import reason_of
from jupyterhub_gpu_slurm.slurm.queue_positions import QueuePosition
from jupyterhub_gpu_slurm.slurm.records import Job, JobState

_SUBMITTING, _QUEUED, _CALLED, _LAUNCHING = 5, 10, 60, 70


def event(
    job: Job | None, since: datetime | None, now: datetime, position: QueuePosition | None = None
) -> dict[str, Any]:
    """Return one event of the spawn page: JupyterHub's keys and ours.

    ``message`` and ``progress`` (percent) are JupyterHub's; ``state`` is the name of a `JobState`;
    ``advice`` says what the user can do, ``since`` and ``expected`` are moments (ISO 8601, UTC) of
    the request and of the likely start; ``position`` is the job's among all ``waiting`` for a
    ``partition``.
    """
    said: dict[str, Any] = {"since": None if since is None else since.isoformat()}
    if job is None:
        return said | {"message": "Submitting the job to Slurm.", "progress": _SUBMITTING}
    said |= {"message": describe(job), "progress": percent(job, since, now), "job": job.job_id}
    said["state"] = job.state.name
    if job.state is JobState.PENDING:
        reason = reason_of(job.reason or "None")
        if reason is not None:
            said["advice"] = _sentence(reason.advice)
        if position is not None:
            said |= asdict(position)
        if job.start is not None and job.start > now:
            said["expected"] = job.start.isoformat()
    return said


def describe(job: Job) -> str:
    """Return one sentence on a job that has not ended, with Slurm's own words in it."""
    name = f"Job {job.job_id}"
    if job.state is JobState.PENDING:
        reason = reason_of(job.reason or "None")
        because = f": {reason.why}" if reason else ""
        words = ", ".join(word for word in (job.slurm_state, job.reason) if word)
        return f"{name} is waiting in the queue{because} ({words})."
    if job.state is JobState.RUNNING:
        where = f" on {job.node}" if job.node else ""
        return f"{name} is running{where} ({job.slurm_state}); JupyterLab is starting."
    if job.state is JobState.UNKNOWN:
        return f"{name} was submitted; Slurm cannot say what state it is in at the moment."
    return endings.ended(job)


def percent(job: Job, since: datetime | None, now: datetime) -> int:
    """Return how far a start is, for the progress bar.

    In the queue: the part of the wait that is over, where Slurm says when the job will start.
    """
    if job.state is JobState.RUNNING:
        return _LAUNCHING
    if job.state is not JobState.PENDING or since is None or job.start is None:
        return _QUEUED
    whole = job.start - since
    if whole <= timedelta(0):
        return _CALLED
    part = min(1.0, max(0.0, (now - since) / whole))
    return round(_QUEUED + part * (_CALLED - _QUEUED))


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:] + "."
