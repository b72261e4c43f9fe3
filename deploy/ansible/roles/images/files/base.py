"""Make the image that users begin theirs with: base.py APPTAINER FILE.

Debian 12 with Python, of the archive's packages. Made once on a machine, in its cache; FILE is a
copy, written whole. To renew it, remove both.
"""

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path(os.environ.get("PORTAL_CACHE", "/var/cache/data-scientist-portal"))
RELEASE = "bookworm"
PACKAGES = ("ca-certificates", "python3", "python3-venv")


def make(apptainer: str, image: Path) -> None:
    """Install the packages into a folder and pack that; raises `CalledProcessError`."""
    with tempfile.TemporaryDirectory(prefix=".base-", dir=image.parent) as name:
        root, half = Path(name, "root"), Path(name, image.name)
        install = ["mmdebstrap", "--quiet", "--mode=root", "--variant=apt"]
        argv = [*install, f"--include={','.join(PACKAGES)}", RELEASE, str(root)]
        subprocess.run(argv, stdout=sys.stderr, check=True, timeout=900)
        packing = "--mksquashfs-args=-comp zstd -Xcompression-level 6"
        argv = [apptainer, "--quiet", "build", packing, str(half), str(root)]
        subprocess.run(argv, stdout=sys.stderr, check=True, timeout=600)
        half.rename(image)


def main(apptainer: str, given: str) -> None:
    """Make it where it is not there."""
    final, kept = Path(given), CACHE / f"base-{RELEASE}.sif"
    CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (CACHE / ".base.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            make(apptainer, kept)
    there = final.parent.stat()
    if there.st_uid != 0 or there.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        sys.exit(f"{final.parent} must belong to root, and nobody else may write there")
    with tempfile.NamedTemporaryFile(dir=final.parent) as half, kept.open("rb") as image:
        shutil.copyfileobj(image, half)
        half.flush()
        Path(half.name).chmod(0o644)
        os.link(half.name, final)


if __name__ == "__main__":
    os.umask(0o022)
    main(*sys.argv[1:])
