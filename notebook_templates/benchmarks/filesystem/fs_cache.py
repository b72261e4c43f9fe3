"""FS-Cache: whether a host keeps on its own disk what it reads from a file server.

Linux does so for NFS mounts with the option ``fsc`` (nfs(5)), where cachefilesd runs. Reads with
O_DIRECT pass it by.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_MOUNTINFO = Path("/proc/self/mountinfo")


def of_folder(folder: Path, mountinfo: str) -> bool | None:
    """Say whether the mount of a folder has it; ``None`` where that is not NFS's.

    ``mountinfo``: the text of /proc/self/mountinfo (proc(5)). Of several mounts on one folder, such
    as an automounter's and what it has mounted, the last is seen.
    """
    longest, found = 0, None
    # By newlines and spaces alone: the names of others' mounts may have any other white space.
    for line in filter(None, mountinfo.split("\n")):
        place, _, system = line.partition(" - ")
        point = Path(_unescaped(place.split(" ")[4]))
        if folder.is_relative_to(point) and len(point.parts) >= longest:
            longest, found = len(point.parts), _state(*system.split(" ", 2))
    return found


def of_folders(folders: Iterable[Path]) -> bool | None:
    """Say whether the mounts of these folders on this host have it, as `agreed` does."""
    places = [folder.expanduser().absolute() for folder in folders]
    for place in places:
        # The first use mounts it. What is wrong with it, reading says.
        with suppress(OSError):
            os.close(os.open(place, os.O_RDONLY | os.O_DIRECTORY))
    mountinfo = _MOUNTINFO.read_bytes().decode(errors="surrogateescape")
    return agreed(of_folder(place.resolve(), mountinfo) for place in places)


def agreed(found: Iterable[bool | None]) -> bool | None:
    """Return what several say; ``None`` where they differ, or one does not know."""
    states = set(found)
    return states.pop() if len(states) == 1 else None


def _state(kind: str, _source: str, options: str = "") -> bool | None:
    if kind not in ("nfs", "nfs4"):
        return None
    # With a name of its own the cache is fsc=NAME.
    return any(option.partition("=")[0] == "fsc" for option in options.split(","))


def _unescaped(text: str) -> str:
    """Undo the kernel's way to write a space, a tab, a newline or a backslash."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
