"""Having slurmctld write down what it knows.

It writes its jobs within seconds of most changes (SAVE_MAX_WAIT in src/slurmctld/state_save.c: 5 s;
on a busy machine longer), but not when the backfill scheduler has started one: that waits for
another change, or for the five minutes' full save (PERIODIC_CHECKPOINT in slurmctld.h). Such a job
would still be waiting in the queue of a backup, and slurmctld, put back, would end it as one that
runs against its will. So a change is made that changes nothing: a job is given the time limit that
it has.
"""

import re
import subprocess
import time
from pathlib import Path

from portal.settings.slurm import Slurm

_FILE = "job_state"
SECONDS = 15.0
_PAUSE = 0.2
# squeue(1): number (of an array's task as 7_3), time limit. Both are Slurm's own words.
_FIELDS = "%i|%l"
_ROW = re.compile(r"(\d+(?:_\d+)?)\|([\d:-]+|UNLIMITED)")
# One that is about to end takes no change any more.
_TRIES = 3


def written(state_dir: Path, slurm: Slurm, seconds: float = SECONDS) -> bool:
    """Have the jobs written; false where slurmctld has not done so in that time.

    True without that, too, where no job runs: then what has changed last is written by now.
    """
    before = _last(state_dir)
    is_due = _remind(slurm)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if _last(state_dir) != before:
            return True
        time.sleep(_PAUSE)
    return not is_due


def _remind(slurm: Slurm) -> bool:
    """Make a change that changes nothing; false where no job runs that could take it."""
    running = _ask(slurm, "squeue", "--noheader", "--all", "--states=running", "-o", _FIELDS)
    if running is None:
        return True
    rows = [row.groups() for line in running.splitlines() if (row := _ROW.fullmatch(line))]
    for job, limit in rows[:_TRIES]:
        if _ask(slurm, "scontrol", "update", f"JobId={job}", f"TimeLimit={limit}") is not None:
            break
    return bool(rows)


def _ask(slurm: Slurm, program: str, *argv: str) -> str | None:
    """Return what a program of Slurm says; none where it fails: no reason for no backup."""
    environment = {"SLURM_CONF": slurm.config_file, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            [f"{slurm.bin_dir}/{program}", *argv],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=slurm.command_timeout_seconds,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _last(state_dir: Path) -> int:
    try:
        return (state_dir / _FILE).stat().st_mtime_ns
    except FileNotFoundError:
        return 0
