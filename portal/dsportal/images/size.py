"""Disk usage: the size of folders, and the space that is left."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def bytes_in(folder: Path) -> int:
    """Return the bytes of all files below a folder, while others may work in it."""
    size = 0
    # Not rglob, which fails at a folder that has been removed since its name was read.
    for below, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # renamed, and counted soon
                found = os.lstat(os.path.join(below, name))
                size += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return size


def free_bytes(folder: Path) -> int:
    """Return what an ordinary user can still write there."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
