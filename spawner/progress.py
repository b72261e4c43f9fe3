"""What the spawn page says about a starting session."""

from spawner.slurm.records import Job, JobState

# Slurm's reasons (squeue(1), "JOB REASON CODES") that a session commonly meets.
_REASONS = {
    "Resources": "no node has enough free GPUs, cores and memory at the moment",
    "Priority": "jobs with a higher priority come first",
    "BeginTime": "Slurm tries again shortly",
    "Dependency": "it waits for another job",
    "Licenses": "a licence it needs is in use",
    "ReqNodeNotAvail": "the nodes it could use are not available",
    "PartitionDown": "the partition is closed by the administrators",
    "PartitionInactive": "the partition is closed by the administrators",
    "PartitionTimeLimit": "it asks for more time than the partition allows",
    "PartitionNodeLimit": "it asks for more than the partition has",
    "AssocGrpGRES": "your group's GPUs are all in use",
    "QOSMaxGRESPerUser": "you already use as many GPUs as you may",
    "JobHeldUser": "it is held",
    "JobHeldAdmin": "an administrator holds it",
    "launch failed requeued held": "it could not be started on its node and is held",
}

_ENDINGS = {
    "BOOT_FAIL": "its node did not start",
    "CANCELLED": "it was cancelled",
    "COMPLETED": "it ended",
    "DEADLINE": "its deadline passed",
    "FAILED": "it failed",
    "NODE_FAIL": "its node failed",
    "OUT_OF_MEMORY": "it used more memory than it had asked for",
    "PREEMPTED": "a job with a higher priority took its place",
    "TIMEOUT": "its time was up",
    "GONE": "Slurm does not know it any more",
}


def describe(job: Job) -> str:
    """Return one sentence on a job that has not ended, with Slurm's own words in it."""
    name = f"Job {job.job_id}"
    if job.state is JobState.PENDING:
        if job.reason is None:
            return f"{name} is in the queue ({job.slurm_state})."
        plain = _REASONS.get(job.reason.split(",")[0])
        because = f": {plain}" if plain else ""
        return f"{name} waits in the queue ({job.slurm_state}, {job.reason}){because}."
    if job.state is JobState.RUNNING:
        where = f" on {job.node}" if job.node else ""
        return f"{name} runs{where} ({job.slurm_state}); JupyterLab is starting."
    if job.state is JobState.UNKNOWN:
        return f"{name} was submitted; Slurm does not say how it is at the moment."
    return ending(job)


def ending(job: Job) -> str:
    """Return one sentence on a job that has ended."""
    words = _ENDINGS.get(job.slurm_state, "it ended")
    shown = "" if job.state is JobState.GONE else f" ({job.slurm_state})"
    return f"Job {job.job_id} is over{shown}: {words}."


def percent(job: Job) -> int:
    """Return how far a start is, for the progress bar."""
    return {JobState.PENDING: 20, JobState.RUNNING: 60}.get(job.state, 10)
