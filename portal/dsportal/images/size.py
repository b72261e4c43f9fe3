"""Disk usage: the size of folders, and the space that is left."""

import os
from pathlib import Path


def bytes_in(folder: Path) -> int:
    """Return the bytes of all files below a folder, while others may work in it."""
    size = 0
    for file in folder.rglob("*"):
        try:
            size += file.lstat().st_size if file.is_file() else 0
        except FileNotFoundError:
            continue  # renamed, and counted soon
    return size


def free_bytes(folder: Path) -> int:
    """Return what an ordinary user can still write there."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
