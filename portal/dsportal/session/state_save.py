"""A checkpoint of slurmctld's state, so that it remembers this session.

If slurmctld crashes before it has (`dsportal.state_save`), it knows a job that still waits; when
the node reports that it runs, it is ended.
"""

import logging
import os
import shutil
import threading
from collections.abc import Mapping

from dsportal import state_save

log = logging.getLogger(__name__)

_SECONDS = 60.0


def begin(bin_dir: str | None, environment: Mapping[str, str] = os.environ) -> threading.Thread:
    """Do so beside the start of the session; ``bin_dir``: where Slurm's programs are, if known."""
    thread = threading.Thread(target=have_written, args=(bin_dir, dict(environment)), daemon=True)
    thread.start()
    return thread


def have_written(bin_dir: str | None, environment: Mapping[str, str]) -> None:
    """Prompt it by the job that ``environment`` names; a failure costs no session."""
    job, slurm_conf = environment.get("PORTAL_JOB_ID"), environment.get("SLURM_CONF")
    scontrol = shutil.which("scontrol", path=bin_dir or environment.get("PATH"))
    if not (job and scontrol):
        return
    why_not = state_save.prompt(scontrol, job, slurm_conf, _SECONDS)
    if why_not is not None:
        log.info("slurmctld will write this session's job later: %s", why_not)
