"""The command lines of Slurm's programs, as argv lists without the programs' folder.

Only fields that no user can write are trusted: a job's name and comment are its owner's words, and
a newline or a separator in them would forge another job's line.
"""

from collections.abc import Iterable

JOB_FIELDS = "%i|%T|%r|%u|%P|%N|%S|%e|%l"
"""squeue(1): job id, long state, reason, user, partition, nodes, (expected) start, end,
time limit."""

MARKED_JOB_FIELDS = "%i|%u|%j"
"""squeue(1): job id, user, name; in an answer whose lines are marked, see `marked`."""

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


def config() -> list[str]:
    """Ask for Slurm's configuration as slurmctld has it."""
    return ["scontrol", "show", "config"]


def comment(job_id: int) -> list[str]:
    """Ask for one job's comment alone: it may hold anything, newlines too."""
    return ["squeue", "--noheader", "--all", f"--jobs={job_id}", "-o", "%k"]


def queue() -> list[str]:
    """Ask for every job that has not ended; what is told of each is said in the environment."""
    return ["squeue", "--noheader", "--all"]


def waiting() -> list[str]:
    """Ask for every job that waits, once for each of its partitions, with its priority there."""
    shown = "%i|%Q|%P|%r"
    return ["squeue", "--noheader", "--all", "--priority", "--states=PENDING", "-o", shown]


def marked(word: str) -> dict[str, str]:
    """Say that `queue` is to tell the jobs' names.

    ``word`` is a secret of this one question. It marks where a job's line begins, so that no
    owner's words can be taken for one. It is in the environment, as everybody on the machine can
    read a command line, and rename a job before Slurm has answered.
    """
    return {"SQUEUE_FORMAT": f"{word}|{MARKED_JOB_FIELDS}"}


def shown(word: str) -> dict[str, str]:
    """Say that `queue` is to tell what is shown of a job; ``word`` as in `marked`."""
    fields = [f"{name}:|" for name in QUEUE_FIELDS]
    fields[0] += f"{word}|"
    return {"SQUEUE_FORMAT2": ",".join([*fields, "Name:"])}


def gpu_allocations() -> list[str]:
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
