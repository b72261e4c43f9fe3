"""Opening what should be a regular file, where somebody may have put something else."""

import os
import stat
from errno import EINVAL
from pathlib import Path

# A pipe or a device must neither hold up the session nor become its terminal.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_regular(path: str | Path) -> tuple[int, os.stat_result]:
    """Open a regular file to read it, without following a link; return its descriptor and status.

    Raises `OSError`, also for what is no regular file, and `ValueError` for what is no path.
    """
    file = os.open(path, _FLAGS)
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        os.close(file)
        raise OSError(EINVAL, "not a file")
    return file, status
