"""Slurm jobs from a notebook: submit, watch, cancel, and find again after a restart of the kernel.

    from jobs import submit, find

    job = submit("sample.job")      # at once; the job waits in Slurm's queue
    job.watch()                     # its state and log, live, while the notebook goes on
    job = find("sample")            # after a restart: the newest job of that name

Needs nothing but Python, so that every kernel has it; `watch` shows widgets where ipywidgets is.
"""

import asyncio
import html
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

SECONDS_PER_COMMAND = 30.0
# The scheduler is everybody's: all jobs that are watched are asked for together, this often at
# first, and more and more seldom while nothing changes.
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 30.0
LOG_LINES = 12
LOG_BYTES = 100_000
"""Of a log's end, which a page can show."""

# What squeue is asked for, and how many characters of each.
_COLUMNS = {
    "State": 20,
    "ReasonList": 400,
    "TimeUsed": 20,
    "NodeList": 400,
    "StdOut": 1000,
    "Name": 256,
    "JobID": 20,
}

# Why a job waits (squeue(1), JOB REASON CODES), for those that one meets every day.
REASONS = {
    "Resources": "too few nodes, GPUs or cores are free; it starts by itself",
    "Priority": "other jobs come first; it starts by itself",
    "Dependency": "it is waiting for another job",
    "BeginTime": "its start time has not come yet",
    "JobHeldUser": "you put it on hold: release it with scontrol release",
    "JobHeldAdmin": "an administrator put it on hold: ask why",
    "PartitionTimeLimit": "it asks for more time than the partition allows",
    "PartitionNodeLimit": "it asks for more nodes than the partition has",
    "ReqNodeNotAvail": "nodes that it needs are down or set aside",
    "QOSMaxJobsPerUserLimit": "you already have as many jobs as you may have",
    "AssocGrpGRES": "your group already has all the GPUs that it may have at once",
}
OVER = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
}
GONE = "GONE"
"""Not known to Slurm any more: it ended some time ago."""


class SlurmCommandError(Exception):
    """Slurm refused, or did not answer; the message is its own."""


@dataclass(frozen=True)
class JobStatus:
    """What Slurm says of a job."""

    word: str
    """Slurm's word, such as RUNNING; `GONE` when Slurm has forgotten the job."""
    reason: str = ""
    """Slurm's word for why it waits, or how it ended."""
    running: str = ""
    """How long it has run, as hours:minutes:seconds."""
    nodes: str = ""
    log: str = ""
    """The file that it writes to; sbatch's usual one, if only accounting still knows the job."""
    name: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it will not run any more."""
        return self.word in OVER or self.word == GONE

    def words(self) -> str:
        """Say it in a sentence."""
        if self.word == "PENDING":
            # Slurm adds to some what they are about: ReqNodeNotAvail, UnavailableNodes:node1
            plain = REASONS.get(self.reason.partition(",")[0], "")
            return f"is waiting ({self.reason})" + (f": {plain}" if plain else "")
        if self.word == "RUNNING":
            return f"is running on {self.nodes}, for {self.running}"
        if self.word == GONE:
            return "has ended; Slurm does not remember how"
        tail = f" ({self.reason})" if self.reason not in ("", "None") else ""
        return self.word.lower().replace("_", " ") + tail


@dataclass(frozen=True)
class BatchJob:
    """A job by its number."""

    number: int

    def state(self) -> JobStatus:
        """Ask Slurm, unless it was asked just now."""
        return _queue.state(self.number)

    def log(self, lines: int | None = None) -> str:
        """Return what the job wrote, or the last lines of it.

        Of a log of more than 100 kB it is the end, below a line that names the file.
        """
        file = Path(self.state().log)
        text, size = tail(file, lines), _bytes_in(file)
        if lines is None and size > LOG_BYTES:
            return f"[The last {LOG_BYTES:,} of {size:,} bytes of {file}]\n{text}"
        return text

    def cancel(self) -> None:
        """End the job."""
        _slurm("scancel", str(self.number))
        _queue.forget_answers()

    def wait(self) -> JobStatus:
        """Return when the job is over; the notebook waits too (`watch` does not).

        A question to Slurm that fails changes nothing and is asked again.
        """
        pace = Backoff()
        while True:
            try:
                state = self.state()
            except SlurmCommandError:
                time.sleep(LONGEST_PAUSE)
                continue
            if state.is_over:
                return state
            time.sleep(pace.next(state))

    def watch(self) -> "asyncio.Task[JobStatus]":
        """Show state and log below the cell, live; other cells can be run meanwhile.

        Returns a task: ``await job.watch()`` waits for the end after all.
        """
        return watch(self, LogView(self).show)


def submit(script: str | Path, *arguments: str, folder: str | Path = ".") -> BatchJob:
    """Hand a job script and its arguments to Slurm; the job starts in ``folder``.

    Raises `SlurmCommandError` with sbatch's words when Slurm refuses.
    """
    path = Path(script).expanduser().resolve()
    there = Path(folder).expanduser()
    printed = _slurm("sbatch", "--parsable", str(path), *arguments, folder=there)
    return BatchJob(int(printed.split(";")[0]))


def validate(script: str | Path, *, folder: str | Path = ".") -> None:
    """Ask Slurm whether it would accept a job script now; nothing is submitted.

    Raises `SlurmCommandError` with sbatch's words when it would not.
    """
    path = Path(script).expanduser().resolve()
    _slurm("sbatch", "--test-only", str(path), folder=Path(folder).expanduser())


def find(name: str) -> BatchJob | None:
    """Return your newest job of this name that waits or runs, ``None`` if there is none."""
    numbers = _slurm("squeue", "--me", "--noheader", f"--name={name}", "--Format=JobID:20")
    found = [int(number) for number in numbers.split()]
    return BatchJob(max(found)) if found else None


def array_tasks(number: int) -> dict[str, int]:
    """Count the tasks of a job array that wait or run, by Slurm's word; empty when it is over."""
    columns = "--Format=ArrayJobID:20,State:20"
    printed = _slurm("squeue", "--me", "--array", "--noheader", columns)
    pairs = [line.split() for line in printed.splitlines()]
    return dict(Counter(pair[1] for pair in pairs if pair[0] == str(number)))


def tail(file: Path, lines: int | None = None, most_bytes: int = LOG_BYTES) -> str:
    """Return the end of a text file; empty when it is not there yet."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - most_bytes))
            text = stream.read().decode(errors="replace")
    except OSError:
        return ""
    return text if lines is None else "\n".join(text.splitlines()[-lines:])


def _bytes_in(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


class Backoff:
    """How long to wait before the next look: longer while nothing changes."""

    def __init__(self) -> None:
        self._last: object = None
        self._pause = FIRST_PAUSE

    def next(self, seen: object) -> float:
        """Return the seconds to wait after having seen this."""
        changed, self._last = seen != self._last, seen
        self._pause = FIRST_PAUSE if changed else min(LONGEST_PAUSE, self._pause * 1.5)
        return self._pause


def watch(job: BatchJob, show: Callable[[JobStatus], object]) -> "asyncio.Task[JobStatus]":
    """Call ``show`` with each state until the job is over, beside what the notebook does.

    Slurm is asked in a thread, so that a scheduler that does not answer stops nobody. A question
    that fails changes nothing and is asked again.
    """

    async def look() -> JobStatus:
        pace = Backoff()
        while True:
            try:
                state = await asyncio.to_thread(job.state)
            except SlurmCommandError:
                await asyncio.sleep(LONGEST_PAUSE)
                continue
            show(state)
            if state.is_over:
                return state
            # Running jobs write: what they show changes more often than their state.
            await asyncio.sleep(FIRST_PAUSE if state.word == "RUNNING" else pace.next(state))

    task = asyncio.get_running_loop().create_task(look())
    _watching.add(task)
    task.add_done_callback(_watching.discard)
    return task


_watching: "set[asyncio.Task[JobStatus]]" = set()


class LogView:
    """A job's state and the end of its log, with a button that cancels it."""

    def __init__(self, job: BatchJob) -> None:
        from IPython.display import display
        from ipywidgets import HTML, Button, VBox

        self._text = HTML()
        self._button = Button(description="Cancel", icon="stop", tooltip=f"scancel {job.number}")
        self._button.on_click(lambda _: job.cancel())
        self._job = job
        display(VBox([self._text, self._button]))

    def show(self, state: JobStatus) -> None:
        """Show the state, and the log as it is now."""
        log = html.escape(tail(Path(state.log), LOG_LINES)) if state.log else ""
        head = html.escape(f"Job {self._job.number} {state.words()}")
        self._text.value = f"<b>{head}</b><pre>{log}</pre>"
        self._button.disabled = state.is_over


class Queue:
    """What Slurm says of all jobs that this notebook asks for, from one question for all."""

    def __init__(self, seconds: float = FIRST_PAUSE) -> None:
        self._seconds = seconds
        self._wanted: set[int] = set()
        self._states: dict[int, JobStatus] = {}
        self._asked_at = float("-inf")
        self.questions = 0
        """How often Slurm was asked."""

    def state(self, number: int) -> JobStatus:
        """Return a job's state, as it was at most some seconds ago."""
        self._wanted.add(number)
        known = self._states.get(number)
        if known is not None and known.is_over:
            return known
        if known is None or time.monotonic() - self._asked_at > self._seconds:
            self._ask()
        return self._states[number]

    def forget_answers(self) -> None:
        """Ask anew at the next question: something was changed."""
        self._asked_at = float("-inf")

    def _ask(self) -> None:
        columns = ",".join(f"{name}:{width}" for name, width in _COLUMNS.items())
        self.questions += 1
        # Others ask from other threads meanwhile, for jobs that this answer may not know yet.
        wanted = tuple(self._wanted)
        # All of the user's: of a list of jobs, squeue gives an error when it knows none of them.
        printed = _slurm("squeue", "--me", "--states=all", "--noheader", f"--Format={columns}")
        listed = dict(read_states(printed))
        for number in wanted:
            if not self._known_as_over(number):
                self._states[number] = listed.get(number) or self._forgotten(number)
        self._asked_at = time.monotonic()

    def _forgotten(self, number: int) -> JobStatus:
        known, last = self._states.get(number), last_word(number)
        return replace(last, log=known.log) if known is not None and known.log else last

    def _known_as_over(self, number: int) -> bool:
        known = self._states.get(number)
        return known is not None and known.is_over


def read_states(printed: str) -> list[tuple[int, JobStatus]]:
    """Read squeue's columns of fixed widths; a value may hold blanks."""
    found = []
    for line in printed.split("\n"):
        # squeue counts a column's width in bytes, not in letters (Slurm, src/squeue/print.c).
        told, values, begin = os.fsencode(line), [], 0
        for width in _COLUMNS.values():
            values.append(os.fsdecode(told[begin : begin + width]).strip())
            begin += width
        word, reason, running, nodes, log, name, number = values
        if number.isdecimal():
            # Of a job that runs or has run to its end, squeue gives its nodes here.
            why = reason.strip("()") if reason.startswith("(") else ""
            found.append((int(number), JobStatus(word, why, running, nodes, log, name)))
    return found


def last_word(number: int) -> JobStatus:
    """Ask Slurm's accounting, where there is one, how a job ended that the queue has forgotten."""
    try:
        options = [
            "--noheader",
            "--parsable2",
            "--allocations",
            "--format=State,NodeList,WorkDir,JobName",
        ]
        printed = _slurm("sacct", f"--jobs={number}", *options)
    except SlurmCommandError:
        return JobStatus(GONE)
    for line in printed.splitlines():
        word, nodes, folder, name = line.split("|", 3)
        # Which file a job writes to, accounting does not say in every Slurm.
        log = f"{folder}/slurm-{number}.out"
        return JobStatus(word.split()[0], nodes=nodes, log=log, name=name)
    return JobStatus(GONE)


def _slurm(program: str, *arguments: str, folder: Path | None = None) -> str:
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            encoding=sys.getfilesystemencoding(),
            # A path may be any bytes, and squeue cuts a long name between any two of them.
            errors="surrogateescape",
            cwd=folder,
            timeout=SECONDS_PER_COMMAND,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmCommandError(f"{program}: {error}") from error
    if done.returncode != 0:
        raise SlurmCommandError(done.stderr.strip() or f"{program} ended with {done.returncode}")
    return done.stdout.strip("\n")


_queue = Queue()
