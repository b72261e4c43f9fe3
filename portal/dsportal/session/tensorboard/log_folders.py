"""Log folders: where a path of the file browser leads, and whether event files are below it.

Any folder of the file browser may be shown. That is what the home has by name; where its links lead
does not matter, since the session reads with the user's own rights and no others.
"""

import os
from collections import deque
from collections.abc import Iterator
from errno import ELOOP
from pathlib import Path, PurePosixPath

from dsportal.session.tensorboard import words

_MOST_ENTRIES = 5_000
"""How many names a look reads: 30 ms on a local disk."""
_EVENTS = "tfevents"
"""What TensorBoard looks for in a file's name (tensorboard 2.21, ``io_wrapper.py``)."""


class FolderError(Exception):
    """A folder cannot be shown; the text is a sentence for the user."""


class SilentFilesError(FolderError):
    """Its storage does not respond: whether the folder can be shown is not known."""


def shown(path: str) -> str:
    """Name a path of the file browser as users know it.

    >>> shown("logs/mnist"), shown("")
    ('~/logs/mnist', '~')
    """
    return f"~/{path}" if path else "~"


def folder_at(home: Path, path: str) -> Path:
    """Return the folder itself, without links; raises `FolderError`."""
    name = shown(path)
    if ".." in PurePosixPath(path).parts or "\0" in path or path.startswith("/"):
        raise FolderError(words.outside(name))
    try:
        folder = (home / path).resolve(strict=True)
        is_folder = folder.is_dir()
    except FileNotFoundError as error:
        raise FolderError(_why_missing(home, path)) from error
    except PermissionError as error:
        raise FolderError(words.no_way(name, _end_of_link(home / path))) from error
    except (OSError, RuntimeError) as error:
        raise FolderError(words.cannot_be_opened(name, _reason(error))) from error
    if not is_folder:
        raise FolderError(words.is_a_file(name))
    if not os.access(folder, os.R_OK | os.X_OK):
        raise FolderError(words.unreadable(name, _end_of_link(home / path)))
    return folder


def _why_missing(home: Path, path: str) -> str:
    for place in _path_prefixes(home, path):
        if place.is_symlink() and not place.exists():
            link = shown(str(place.relative_to(home)))
            return words.dead_link(link, str(place.readlink()))
    return words.no_folder(shown(path))


def _path_prefixes(home: Path, path: str) -> Iterator[Path]:
    place = home
    for part in PurePosixPath(path).parts:
        place /= part
        yield place


def _end_of_link(place: Path) -> str:
    end = os.path.realpath(place)
    return "" if end == str(place) else end


def _reason(error: OSError | RuntimeError) -> str:
    # Python 3.11 knows of a loop of links in its own way.
    if isinstance(error, RuntimeError) or error.errno == ELOOP:
        return "a link in it leads to itself"
    return str(error.strerror)


def has_events(folder: Path, most_entries: int = _MOST_ENTRIES) -> bool | None:
    """Say whether there are event files in a folder or below it.

    What is nearest is looked at first. ``None``: there is too much to look at all of it, or a
    part of it cannot be read.
    """
    waiting = deque([folder])
    left = most_entries
    is_whole = True
    while waiting:
        try:
            with os.scandir(waiting.popleft()) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return None
                    if _EVENTS in entry.name:
                        return True
                    if not entry.name.startswith(".") and entry.is_dir():
                        waiting.append(Path(entry.path))
        except OSError:
            is_whole = False
    return False if is_whole else None
