"""Make the character devices that stand for GPUs: FOLDER MAJOR FIRST_MINOR GPUS NODE...

Prints what it made. A device with another number than it should have is made anew.
"""

import os
import stat
import sys
from pathlib import Path


def ensure_device(path: Path, number: int) -> None:
    """Make the device unless it is there as it should be."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        pass
    else:
        if (
            stat.S_ISCHR(found.st_mode)
            and found.st_rdev == number
            and found.st_mode & 0o777 == 0o666
        ):
            return
        path.unlink()
    os.mknod(path, stat.S_IFCHR | 0o666, number)
    print(path)


def main() -> None:
    """Give the devices consecutive numbers, node by node."""
    folder, major, first_minor, gpus, *nodes = sys.argv[1:]
    os.umask(0)
    for index, node in enumerate(nodes):
        place = Path(folder) / node
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
        for gpu in range(int(gpus)):
            minor = int(first_minor) + index * int(gpus) + gpu
            ensure_device(place / f"gpu{gpu}", os.makedev(int(major), minor))


main()
