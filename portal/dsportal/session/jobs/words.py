"""Messages of the Slurm panel about a job that cannot be shown, cancelled or read."""

ITS_OWN_SESSION = "This job is the session that you are in. To end it, choose File > Stop Session."
NO_OUTPUT = (
    "This job has no output file: only jobs submitted with sbatch have one. The output of "
    "srun and salloc appears where you started them."
)
SLURM_SILENT = "Slurm is not responding; try again in a minute."


def no_job(job_id: str) -> str:
    """Say that Slurm lists no such job for this user."""
    return f"You have no job {job_id} in Slurm."


def not_installed(program: str) -> str:
    """Say which of Slurm's programs is missing."""
    return f"{program} is not installed on this node; tell the administrators."


def slurm_says(complaint: str) -> str:
    """Say why Slurm refused."""
    return f"Slurm says: {complaint}"


def no_file(path: str) -> str:
    """Say that the output is not there."""
    return (
        f"There is no file {path} yet, or not on this node: a job creates it when it starts, and "
        "each node has its own folders such as /tmp."
    )


def unreadable_file(path: str, reason: str | None) -> str:
    """Say what the system says."""
    return f"{path} cannot be read: {reason}."


def no_plain_file(path: str) -> str:
    """Say that the output was a pipe or a device."""
    return f"{path} is not a regular file: what the job wrote there was not kept."
