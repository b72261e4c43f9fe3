"""Private folders: nobody else can put anything there, such as a link to somewhere else."""

import os
import stat
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def is_ones_own(folder: str | Path) -> bool:
    """Whether a folder is the user's, and nobody else may write to it."""
    status = os.stat(folder)
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE


def checkpoint_folder() -> Path:
    """Return the folder of the home for copies of files that are elsewhere, and make it.

    Raises `OSError` where the home has no room for it.
    """
    folder = Path.home() / ".local/share/data-scientist-portal/checkpoints"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
