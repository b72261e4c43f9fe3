"""A checkpoint of slurmctld's job state, by an update of a job that sets nothing.

slurmctld writes its jobs within seconds of most changes (SAVE_MAX_WAIT in src/slurmctld/
state_save.c: 5 s; on a busy machine longer), but not when the backfill scheduler has started one:
that waits for another change, or for the five minutes' full save (PERIODIC_CHECKPOINT in
slurmctld.h). An update is such a change, whatever it sets. This one sets a field to NO_VAL of
slurm.h, which is what scontrol sends for all those that are not to be set: so nobody's change of
the same job can be lost, not even one that is made at the same moment. So in Slurm 22.05, where it
was tried, and in the sources of 24.11 and 26.05.

It uses the standard library only: sessions run it too.
"""

import subprocess
from collections.abc import Mapping

_NO_VAL = 0xFFFF_FFFE


def prompt(scontrol: str, job: str, slurm_conf: str | None, seconds: float) -> str | None:
    """Have the jobs written within seconds; return why not, in words.

    ``job`` is one that has not ended, of the one who asks or of anybody where that is root.
    """
    environment: Mapping[str, str] = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    if slurm_conf:
        environment = {**environment, "SLURM_CONF": slurm_conf}
    try:
        subprocess.run(
            [scontrol, "update", f"JobId={job}", f"Switches={_NO_VAL}"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(getattr(error, "stderr", None) or error).strip()
    return None
