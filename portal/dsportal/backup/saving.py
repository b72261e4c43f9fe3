"""A checkpoint of slurmctld's state, before it is copied.

What the backfill scheduler has started, it does not write of itself (`dsportal.state_save`). Such a
job would still be waiting in the queue of a backup, and slurmctld, put back, would end it as one
that runs against its will.
"""

import re
import subprocess
import time
from pathlib import Path

from dsportal import state_save
from dsportal.settings.slurm import SlurmSettings

_FILE = "job_state"
SECONDS = 15.0
_PAUSE = 0.2
# squeue(1), "%i": number, of an array's task as 7_3.
_JOB = re.compile(r"\d+(?:_\d+)?", re.ASCII)
# One that is about to end takes no change any more.
_TRIES = 3


def written(state_dir: Path, slurm: SlurmSettings, seconds: float = SECONDS) -> bool:
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


def _remind(slurm: SlurmSettings) -> bool:
    """Have it prompted by some job that runs; false where none does."""
    running = _running(slurm)
    if running is None:
        return True
    jobs = [line for line in running.split("\n") if _JOB.fullmatch(line)]
    scontrol, seconds = f"{slurm.bin_dir}/scontrol", slurm.command_timeout_seconds
    for job in jobs[:_TRIES]:
        if state_save.prompt(scontrol, job, slurm.config_file, seconds) is None:
            break
    return bool(jobs)


def _running(slurm: SlurmSettings) -> str | None:
    """Return squeue's word on the jobs that run; none where it fails: no reason for no backup."""
    environment = {"SLURM_CONF": slurm.config_file, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            [f"{slurm.bin_dir}/squeue", "--noheader", "--all", "--states=running", "-o", "%i"],
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
