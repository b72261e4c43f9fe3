"""Having slurmctld write down that this session runs.

What the backfill scheduler has started, slurmctld writes only when some job changes, or with the
full save of every five minutes (`portal.backup.saving` names the places in its source). If it
crashes before that, it knows a job that still waits; when the node reports that it runs, it is
ended. So the session gives its job the name that it has: a change that changes nothing, and is
written within five seconds.
"""

import logging
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping

log = logging.getLogger(__name__)

_SECONDS = 60.0


def begin(bin_dir: str | None, environment: Mapping[str, str] = os.environ) -> threading.Thread:
    """Do so beside the start of the session; ``bin_dir``: where Slurm's programs are, if known."""
    thread = threading.Thread(target=have_written, args=(bin_dir, dict(environment)), daemon=True)
    thread.start()
    return thread


def have_written(bin_dir: str | None, environment: Mapping[str, str]) -> None:
    """Change nothing of the job that ``environment`` names; a failure costs no session."""
    number, name = environment.get("SLURM_JOB_ID"), environment.get("SLURM_JOB_NAME")
    program = shutil.which("scontrol", path=bin_dir or environment.get("PATH"))
    if not (number and name and program):
        return
    slurm_conf = environment.get("SLURM_CONF")
    try:
        subprocess.run(
            [program, "update", f"JobId={number}", f"JobName={name}"],
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
            | ({"SLURM_CONF": slurm_conf} if slurm_conf else {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or error
        log.info("slurmctld will write this session's job later: %s", str(said).strip())
