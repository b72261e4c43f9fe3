"""Links and the runtime folder that a session makes in the user's home."""

import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

log = logging.getLogger(__name__)


def refresh_links(home: Path, folders: Mapping[str, str]) -> None:
    """Make each name a link in the home to its folder.

    A link of that name is ours and follows the settings. A real file or folder of that
    name is the user's and stays; the log says so.
    """
    for name, target in folders.items():
        if name in {"", ".", ".."} or "/" in name:
            log.warning("No link %r in the home: it is not a plain name", name)
            continue
        try:
            _refresh_link(home / name, target)
        except OSError as error:
            log.warning("No link %s to %s: %s", home / name, target, error)


def _refresh_link(link: Path, target: str) -> None:
    if link.is_symlink():
        if str(link.readlink()) == target:
            return
        _replace_link(link, target)
    elif link.exists():
        log.warning("No link %s to %s: something of the user's has that name", link, target)
    else:
        link.symlink_to(target)


def _replace_link(link: Path, target: str) -> None:
    # Renamed over the old one, so that the name never leads nowhere for another session.
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.symlink_to(target)
    fresh.replace(link)


def make_runtime_folder(job: str) -> Path:
    """Make a folder that only the user can enter, for sockets and connection files.

    It lies in the job's scratch space (``TMPDIR`` or ``/tmp``), not in the home: homes
    come over NFS, and a socket's path may have 107 characters at most (unix(7)). Slurm's
    epilog finds it by the job's number, where nobody was left to remove it.
    """
    return Path(tempfile.mkdtemp(prefix=f"session-{job}-"))


def remove_runtime_folder(folder: Path) -> None:
    """Remove what make_runtime_folder made; leftovers do no harm."""
    shutil.rmtree(folder, ignore_errors=True)
