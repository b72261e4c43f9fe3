"""Make the character devices that stand for GPUs: FOLDER MAJOR FIRST_MINOR GPUS.

All virtual nodes of the machine have the same ones, as `/dev/nvidia0` has the same number on each
real machine: each job's cgroup tells which of them are the job's, and there is no other node's
device that a job could open. Prints what it changed; a device with another number than it should
have is made anew, and what else is in the folder is removed.
"""

import os
import shutil
import stat
import sys
from pathlib import Path

FOLDER_MODE = 0o755
DEVICE_MODE = 0o666


def ensure_folder(folder: Path) -> None:
    """Let root alone put something into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if stat.S_IMODE(folder.stat().st_mode) != FOLDER_MODE:
        folder.chmod(FOLDER_MODE)
        print(folder)


def ensure_device(path: Path, number: int) -> None:
    """Make the device unless it is there as it should be."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        pass
    else:
        if (found.st_mode, found.st_rdev) == (stat.S_IFCHR | DEVICE_MODE, number):
            return
        remove(path)
    os.mknod(path, stat.S_IFCHR, number)
    path.chmod(DEVICE_MODE)
    print(path)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def main() -> None:
    """Give the devices consecutive numbers."""
    folder, major, first_minor, gpus = sys.argv[1:]
    os.umask(0o022)
    place = Path(folder)
    ensure_folder(place)
    wanted = {place / f"gpu{gpu}": int(first_minor) + gpu for gpu in range(int(gpus))}
    for path, minor in wanted.items():
        ensure_device(path, os.makedev(int(major), minor))
    for path in set(place.iterdir()) - set(wanted):
        remove(path)
        print(f"removed {path}")


if __name__ == "__main__":
    main()
