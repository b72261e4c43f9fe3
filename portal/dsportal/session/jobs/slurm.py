"""Slurm's own programs, run as the user: for what the cluster's service does not know.

How jobs ended, where they write to, and to cancel one. Names and comments of jobs are their owners'
words, with newlines too; nothing here trusts a line for what it says of another user's job.
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from dsportal.session.jobs import words
from dsportal.session.jobs.records import UserJob, exit_of
from jupyterhub_gpu_slurm.errors import SlurmError, UnreadableOutput
from jupyterhub_gpu_slurm.slurm import program
from jupyterhub_gpu_slurm.slurm.queue import node_names

_SECONDS = 20.0
# Of one answer: far more than all jobs of a user.
_MOST_BYTES = 1 << 28
# squeue(1), --Format: the separator stands behind each; the name comes last, as it may hold one.
_FIELDS = (
    "JobArrayID",
    "State",
    "Reason",
    "Partition",
    "NodeList",
    "NumNodes",
    "tres-alloc",
    "tres-per-job",
    "tres-per-node",
    "SubmitTime",
    "StartTime",
    "EndTime",
    "exit_code",
    "Name",
)
_FORMAT = ",".join(f"{field}:|" for field in _FIELDS)
# A name with a newline lacks the last separator, and its rest is no row.
_ROW = re.compile(
    r"(\d[\d_+\[\],:.%-]*)\|" + r"([^|]*)\|" * (len(_FIELDS) - 2) + r"(.*?)\|?", re.ASCII
)
_GPUS_IN_ALL = re.compile(r"(?:^|,)gres/gpu=(\d+)", re.ASCII)
_GPUS = re.compile(r"(?:^|,)gres[:/]gpu(?:[:=][^,:=]*)??[:=]?(\d+)?(?=,|$)", re.ASCII)
# scontrol(1), show job: a job's free words come before these three lines, so the last ones count.
_FILES = re.compile(r"^   StdErr=(.*)\n   StdIn=.*\n   StdOut=(.*)$", re.MULTILINE)
_STEPS = re.compile(r"(\d+)-(\d+):(\d+)", re.ASCII)
_LARGEST_TASK = 4_000_000
"""slurm.conf(5), MaxArraySize."""
_TASKS_TOGETHER = 10_000
"""In one argument of scancel: Linux takes none of more than 128 KiB, execve(2)."""
_MOST_NODES = 1000
_NODES = re.compile(r"[^,\[]+(?:\[[^\]]*\])?", re.ASCII)


class SlurmRefused(Exception):
    """Slurm refused, or did not answer; the text is for the user."""


@dataclass(frozen=True)
class LogFiles:
    """Paths of a job's stdout and stderr."""

    out: str
    err: str


class SlurmPrograms:
    """Runs Slurm's programs; each call has a time limit."""

    def __init__(self, bin_dir: str | None, environment: Mapping[str, str] = os.environ) -> None:
        """``bin_dir``: where they are; where it is not said, the session's ``PATH`` tells."""
        self._path = bin_dir or environment.get("PATH", "")
        self._environment = {"LC_ALL": "C", "PATH": "/usr/bin:/bin", "TZ": "UTC"}
        if environment.get("SLURM_CONF"):
            self._environment["SLURM_CONF"] = environment["SLURM_CONF"]

    async def own_jobs(self) -> tuple[UserJob, ...]:
        """Return the user's jobs, with those that ended as long as Slurm knows them."""
        argv = ["--me", "--states=all", "--noheader", f"--Format={_FORMAT}"]
        return jobs_from(await self._run("squeue", *argv))

    async def cancel(self, job_id: str) -> None:
        """Cancel a job; Slurm says whose jobs one may cancel."""
        is_cut = "[" in job_id and ("..." in job_id or not job_id.endswith("]"))
        whole = await self._whole_id(job_id) if is_cut else job_id
        # scancel takes 7_[3-5], but neither the limit of tasks that squeue adds (7_[3-5%2]) nor
        # steps (7_[0-9:3]): seen with 22.05.
        await self._run("scancel", *_short(_STEPS.sub(_each, re.sub(r"%\d+", "", whole))))

    async def log_files(self, job_id: str) -> LogFiles | None:
        """Return where a job of the user's writes to; ``None`` for one without files."""
        # Nothing but numbers is printed, and only of the user's own.
        argv = ["--me", "--states=all", "--noheader", "--format=%i"]
        own = await self._run("squeue", *argv)
        if job_id not in own.split():
            raise SlurmRefused(words.no_job(job_id))
        return files_from(await self._run("scontrol", "show", "job", job_id))

    async def _whole_id(self, job_id: str) -> str:
        """Return the same tasks of an array, with those that squeue had no room for."""
        argv = ["--me", "--states=PENDING", "--noheader", "--format=%i"]
        # squeue(1): no limit to the length of a list of tasks.
        waiting = await self._run("squeue", *argv, SLURM_BITSTR_LEN="0")
        array = job_id.partition("[")[0]
        for found in waiting.split():
            if found.startswith(f"{array}["):
                return found
        raise SlurmRefused(words.no_job(job_id))

    async def _run(self, name: str, *arguments: str, **variables: str) -> str:
        path = shutil.which(name, path=self._path)
        if path is None:
            raise SlurmRefused(words.not_installed(name))
        argv, environment = [path, *arguments], self._environment | variables
        try:
            done = await program.run(argv, environment, _SECONDS, _MOST_BYTES)
        except SlurmError as error:
            raise SlurmRefused(words.SLURM_SILENT) from error
        if done.code != 0 or done.err.startswith("scancel: error"):
            raise SlurmRefused(words.slurm_says(complaint(done.err)))
        return done.out


def _each(steps: re.Match[str]) -> str:
    first, last, step = map(int, steps.groups())
    if last > _LARGEST_TASK:
        return steps[0]
    return ",".join(map(str, range(first, last + 1, max(1, step))))


def _short(job_id: str) -> list[str]:
    """Name the same tasks of an array in as many arguments as it takes."""
    array, bracket, tasks = job_id.removesuffix("]").partition("[")
    if not bracket:
        return [job_id]
    each = tasks.split(",")
    starts = range(0, len(each), _TASKS_TOGETHER)
    return [f"{array}[{','.join(each[at : at + _TASKS_TOGETHER])}]" for at in starts]


def jobs_from(text: str) -> tuple[UserJob, ...]:
    """Read squeue's rows; the rest of a name with a newline is left out."""
    return tuple(_job(match.groups()) for match in map(_ROW.fullmatch, text.splitlines()) if match)


def _job(fields: tuple[str, ...]) -> UserJob:
    job_id, state, reason, partition, nodes, node_count, *rest = fields
    allocated, per_job, per_node, submitted, start, end, status, name = rest
    exit_code, signal = exit_of(status)
    has_started = bool(nodes)
    job = UserJob(
        id=job_id,
        state=state,
        name=name,
        reason=None if reason in ("", "None") else reason,
        partition=partition or None,
        gpus=gpus_of(allocated, per_job, per_node, node_count),
        nodes=nodes_from(nodes),
        submitted=_moment(submitted),
        started=_moment(start) if has_started else None,
        expected_start=None if has_started else _moment(start),
        # Of a job that waits, Slurm adds its time limit to the expected start.
        ends=None if state == "PENDING" else _moment(end),
    )
    if not job.is_over:
        return job
    return replace(job, exit_code=exit_code, signal=signal, reason=None, expected_start=None)


def nodes_from(text: str) -> tuple[str, ...]:
    """Write out a list of nodes; one of very many stays as Slurm wrote it.

    >>> nodes_from("node[001-002],gpu1"), nodes_from("node[1-99999999]")
    (('node001', 'node002', 'gpu1'), ('node[1-99999999]',))
    """
    try:
        names = tuple(islice(node_names(text), _MOST_NODES + 1))
    except UnreadableOutput:
        names = ()
    return names if 0 < len(names) <= _MOST_NODES else tuple(_NODES.findall(text))


def gpus_of(allocated: str, per_job: str, per_node: str, nodes: str) -> int | None:
    """Count a job's GPUs, from what Slurm accounts for or from what the job asked for."""
    in_all = _GPUS_IN_ALL.search(allocated)
    if in_all:
        return int(in_all[1])
    for text, times in ((per_job, "1"), (per_node, nodes)):
        match = _GPUS.search(text)
        if match:
            return int(match[1] or 1) * int(times) if times.isdecimal() else None
    return 0


def files_from(text: str) -> LogFiles | None:
    """Read where a job writes to; ``None`` where Slurm names nothing, as of a job of srun's."""
    found = _FILES.findall(text)
    if not found:
        return None
    err, out = (path.strip() for path in found[-1])
    return LogFiles(out, err) if out.startswith("/") else None


def complaint(text: str) -> str:
    """Return the last line of what a program of Slurm's complains of, without its name.

    >>> complaint("scancel: error: Kill job error on job id 5: Access/permission denied")
    'Kill job error on job id 5: Access/permission denied'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"^\w+: (?:error: )?", "", lines[-1]) if lines else "no reason given"


def _moment(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
