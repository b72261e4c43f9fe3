"""Messages for users about why a start or a session ended.

JupyterHub's page of a failed start shows them, and the options form says them of the last session.
"""

from datetime import timedelta

from jupyterhub_gpu_slurm.session.observation import Ending
from jupyterhub_gpu_slurm.slurm.records import Job, JobState

OUTCOMES = {
    "BOOT_FAIL": "its node did not start",
    "CANCELLED": "it was cancelled",
    "COMPLETED": "it ended",
    "DEADLINE": "its deadline passed",
    "FAILED": "it failed",
    "NODE_FAIL": "its node failed",
    "OUT_OF_MEMORY": "it used more memory than it had asked for",
    "PREEMPTED": "a job with a higher priority took its place",
    "REVOKED": "another cluster in the federation took it over",
    "TIMEOUT": "its time was up",
    "GONE": "Slurm no longer knows about it",
}
"""By Slurm's state."""

BECAUSE = {
    Ending.STOPPED: "you stopped it",
    Ending.STOPPED_BY_OTHER: "an administrator stopped it",
    Ending.UNUSED: "nobody was using it",
    Ending.FINISHED: "you shut it down",
    Ending.TIME_LIMIT: "its time was up",
    Ending.OUT_OF_MEMORY: "it used more memory than it had",
    Ending.PREEMPTED: "a job with a higher priority took its place",
    Ending.REQUEUED: "its job was put back into the queue",
    Ending.CANCELLED: "its job was cancelled in Slurm",
    Ending.NODE_FAILED: "its node failed",
    Ending.FAILED: "its program failed",
    Ending.NOT_STARTED: "it was cancelled or failed before it was ready",
}
"""By how a session came to its end: "Your session ended at 14:53 because ..."."""


def because(ending: Ending, unused: timedelta | None = None) -> str:
    """Say why a session ended; empty where nobody knows. ``unused``: for how long it may be."""
    if ending is Ending.UNUSED and unused is not None:
        return f"nobody had used it for {span(unused)}"
    return BECAUSE.get(ending, "")


def ended(job: Job) -> str:
    """Say how a job ended."""
    outcome = OUTCOMES.get(job.slurm_state, "it ended")
    shown = "" if job.state is JobState.GONE else f" ({job.slurm_state})"
    return f"Job {job.job_id} is over{shown}: {outcome}."


def requeued(job_id: str) -> str:
    """Say that a session's job was put back into the queue, and is lost."""
    return (
        f"Job {job_id} was put back into Slurm's queue, by an administrator or because its node "
        "failed, and was cancelled."
    )


def last_session(ending: str) -> str:
    """Say of the last session how its job ended."""
    return f"Your last session has ended. {ending}"


def unused(time: timedelta) -> str:
    """Say of the last session that nobody had used it for so long."""
    return (
        f"Your last session ended because it had not been used for {span(time)}: no cell ran, no "
        "terminal was used, and its processors and GPUs were idle. An open browser tab alone does "
        "not count as use. Its GPUs are now free for others; what you saved is in your home "
        "directory."
    )


def not_started(ending: str) -> str:
    """Say of a start that its job ended while it was awaited."""
    return f"The session could not be started. {ending}"


def ended_while_starting(ending: str) -> str:
    """Say of a start that its job ended although the session had spoken up."""
    return f"The session ended while it was starting. {ending}"


def silent(job_id: str, node: str | None, seconds: float) -> str:
    """Say of a start that its job runs, but nobody listens there."""
    return (
        f"Job {job_id} is running on {node}, but the session did not answer within {seconds:g} "
        "seconds, so it was cancelled."
    )


def waited_too_long(job_id: str, seconds: float) -> str:
    """Say of a start that its job waited longer than the site allows."""
    return (
        f"Job {job_id} waited in the queue for {seconds / 3600:.3g} h and was cancelled. "
        "Choose fewer GPUs, or another partition."
    )


def span(time: timedelta) -> str:
    """Write a time for people: ``2 h``, ``1 h 30 min``, ``20 min``, ``12 s``."""
    seconds = round(time.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    parts = [f"{hours} h"] if hours else []
    return " ".join(parts + ([f"{minutes} min"] if minutes else []))
