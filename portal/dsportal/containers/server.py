"""Detection of the server of a whole session in an image, without running anything of it.

The hub asks before it submits. It sees the image as the compute nodes do, or not at all.
"""

import os
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dsportal.containers.sif import HEADER, MARK

PROGRAM = "jupyterhub-singleuser"
_UNSQUASHFS = "/usr/bin/unsquashfs"
_SECONDS = 20.0
_DESCRIPTOR = struct.Struct("<i?III7q128s384s")
_PARTITION, _SQUASHFS, _SYSTEM = 0x4004, 1, 2
_MOST_DESCRIPTORS = 1024


def holds_server(image: str | Path) -> bool | None:
    """Look for `PROGRAM` in a folder named ``bin`` of the image; ``None`` where one cannot tell.

    Waits for a file system that hangs: call it in a thread.
    """
    image = Path(image)
    try:
        if image.is_dir():
            return _in_folder(image, time.monotonic() + _SECONDS)
        with image.open("rb") as file:
            offset = system_offset(file)
        return None if offset is None else _in_squashfs(image, offset)
    except (OSError, struct.error, subprocess.SubprocessError):
        return None


def system_offset(file: BinaryIO) -> int | None:
    """Return where in a SIF the squashfs of its system begins; ``None`` where there is none."""
    header = HEADER.unpack(file.read(HEADER.size))
    if header[1] != MARK:
        return None
    *_, total, start, _, _, _ = header
    file.seek(start)
    for _ in range(min(total, _MOST_DESCRIPTORS)):
        kind, is_used, _, _, _, offset, *_, extra = _DESCRIPTOR.unpack(file.read(_DESCRIPTOR.size))
        if is_used and kind == _PARTITION:
            file_system, use = struct.unpack_from("<ii", extra)
            if (file_system, use) == (_SQUASHFS, _SYSTEM):
                return int(offset)
    return None


def _in_squashfs(image: Path, offset: int) -> bool:
    argv = [_UNSQUASHFS, "-no-progress", "-lc", "-offset", str(offset), str(image)]
    listed = subprocess.run(argv, capture_output=True, timeout=_SECONDS, check=True)
    return f"/bin/{PROGRAM}\n".encode() in listed.stdout


def _in_folder(image: Path, deadline: float) -> bool | None:
    for folder in _folders(image):
        if os.path.basename(folder) == "bin" and os.path.lexists(os.path.join(folder, PROGRAM)):
            return True
        if time.monotonic() > deadline:
            return None
    return False


def _folders(image: Path) -> Iterator[str]:
    for folder, below, _ in os.walk(image):
        yield folder
        # What a program lies in is not among the kernel's files and a site's data.
        below[:] = [name for name in below if name not in ("proc", "sys", "dev", "share")]
