"""Waiting until slurmctld has written down what it knows.

It writes its state a while after a change: 5 s (SAVE_MAX_WAIT in src/slurmctld/state_save.c), and
on a busy machine longer. A job that began in between would still be waiting in the queue of a
backup, and slurmctld, put back, would start it a second time, which ends it.
"""

import time
from pathlib import Path

_FILE = "job_state"
SECONDS = 15.0
_PAUSE = 0.2


def wait(state_dir: Path, seconds: float = SECONDS) -> bool:
    """Return when the jobs were written after this call; false where that has not been for so long.

    Then none of them has changed meanwhile, and the last state is as good.
    """
    begun = time.time()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if _written(state_dir) > begun:
            return True
        time.sleep(_PAUSE)
    return False


def _written(state_dir: Path) -> float:
    try:
        return (state_dir / _FILE).stat().st_mtime
    except FileNotFoundError:
        return 0.0
