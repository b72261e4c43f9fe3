"""What is asked of Slurm's programs: argv lists, without the folder of the programs.

Only fields that no user can write are trusted: a job's name and comment are its owner's words, and
a newline or a separator in them would forge another job's line.
"""

from collections.abc import Iterable

JOB_FIELDS = "%i|%T|%r|%u|%P|%N|%S|%e"
"""squeue(1): job id, long state, reason, user, partition, nodes, (expected) start, end."""

MARKED_JOB_FIELDS = "%i|%u|%j"
"""squeue(1): job id, user, name. The name is its owner's word: see `parsing.marked_jobs`."""

QUEUE_FIELDS = (
    *("JobID", "JobArrayID", "State", "UserName", "Partition", "NumNodes", "NumTasks"),
    *("tres-per-node", "tres-per-job", "tres-per-task"),
    *("SubmitTime", "StartTime", "EndTime", "NodeList", "Reason"),
)
"""squeue(1), "-O". The job's name follows as the last one: all else is Slurm's own."""


def jobs(job_ids: Iterable[int]) -> list[str]:
    """Ask for these jobs, ended ones too while Slurm still knows them (``MinJobAge``)."""
    listed = ",".join(str(job_id) for job_id in sorted(job_ids))
    return ["squeue", "--noheader", "--all", "--states=all", f"--jobs={listed}", "-o", JOB_FIELDS]


def job(job_id: int) -> list[str]:
    """Ask for one job, by another program than the usual: a second opinion."""
    return ["scontrol", "--oneliner", "show", "job", str(job_id)]


def all_jobs() -> list[str]:
    """Ask for every job that has not ended, with its name."""
    return ["squeue", "--noheader", "--all", "-o", MARKED_JOB_FIELDS]


def queue(word: str) -> list[str]:
    """Ask for every job that has not ended, with what is shown of it.

    ``word`` is a secret of this one question. It marks where a job's line begins, so that no
    owner's words can be taken for one.
    """
    fields = [f"{name}:|" for name in QUEUE_FIELDS]
    fields[0] += f"{word}|"
    return ["squeue", "--noheader", "--all", "-O", ",".join([*fields, "Name:"])]


def gpu_shares() -> list[str]:
    """Ask for every job's GPUs by their numbers.

    Only in JSON are they told in a way that no owner's words can forge.
    """
    return ["squeue", "--all", "--json"]


def nodes() -> list[str]:
    """Ask for every node, a line each: sinfo does not tell what is used of each kind of GPU."""
    return ["scontrol", "--all", "--oneliner", "--details", "show", "node"]


def partitions() -> list[str]:
    """Ask for every partition's rules, a line each."""
    return ["scontrol", "--all", "--oneliner", "show", "partition"]


def diagnostics() -> list[str]:
    """Ask how the scheduler is."""
    return ["sdiag"]
