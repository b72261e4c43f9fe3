"""Images that Apptainer runs, each a root file system of Debian 12 with one thing more.

Made once, by root, and kept: a folder of the cache, or one SIF file beside it.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import bootstrap

from tests.debian import building, roots

PREFIX = Path("/opt/data-scientist-portal/apptainer")
PROGRAM = PREFIX / "usr/bin/apptainer"
"""Apptainer, as role apptainer installs it on a Debian 12."""
_PACK = bootstrap.DEPLOY / "apptainer.py"
_SMALL = "busybox-static"
# What Apptainer mounts something upon, or adds the user to.
_MOUNTED = ("bin", "dev", "etc", "home", "proc", "sys", "tmp", "usr", "var/tmp")
_WRITTEN = ("etc/passwd", "etc/group", "etc/hosts", "etc/localtime", "etc/resolv.conf")
_KERNEL = ("python3-ipykernel",)
_R = ("r-base-core", "r-cran-irkernel")
# Where the second image has Jupyter's server, in the versions of the portal's own sessions.
_SERVER = "opt/server"
TRAINING = "opt/training"


def pack() -> str:
    """Have what role apptainer unpacks in the cache, and return its file."""
    argv = ["/usr/bin/python3", str(_PACK), "--newest", str(PREFIX)]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    return done.stdout.strip()


def apptainer() -> Path:
    """Return the program; install it as the role does, where no portal has done so."""
    with bootstrap.only_one(bootstrap.CACHE, "apptainer"):
        roots.install_tools("squashfs-tools", "squashfuse", "fuse-overlayfs", "uidmap")
        if not PROGRAM.exists():
            packed = pack()
            half = PREFIX.with_name(".apptainer.building")
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir(parents=True)
            shutil.unpack_archive(packed, half, filter="tar")
            half.rename(PREFIX)
    return PROGRAM


def small_folder() -> Path:
    """Return a folder image of a few programs only, which is quickly built upon."""

    def make(folder: Path) -> None:
        root = folder / "root"
        for name in _MOUNTED:
            (root / name).mkdir(parents=True)
        for name in _WRITTEN:
            (root / name).touch()
        apt = ["/usr/bin/apt-get", "-q", "-oAPT::Sandbox::User=root", "download", _SMALL]
        building.call(apt, seconds=120, folder=folder)
        (package,) = folder.glob("*.deb")
        building.call(["/usr/bin/dpkg", "-x", str(package), str(root)], seconds=30)
        install = ["/usr/sbin/chroot", str(root), "/bin/busybox", "--install", "-s", "/bin"]
        building.call(install, seconds=30)

    return roots.cached("image-small", [_SMALL, *_MOUNTED, *_WRITTEN], make)


def small_image() -> Path:
    """Return the same as a SIF."""
    return _sif(small_folder())


def kernel_folder() -> Path:
    """Return a folder image with Debian's Python and ipykernel."""
    return _folder_with("kernel", _KERNEL)


def kernel_image() -> Path:
    """Return the same as a SIF."""
    return _sif(kernel_folder())


def r_folder() -> Path:
    """Return a folder image with Debian's R and IRkernel."""
    return _folder_with("r", _R)


def _folder_with(name: str, packages: Sequence[str]) -> Path:
    def make(folder: Path) -> None:
        # What boots a machine does no harm in an image.
        roots.copy(roots.minimal(), folder / "root")
        roots.install(folder / "root", packages)

    return roots.cached(f"image-{name}", [*roots.INCLUDED, *packages], make)


def session_folder() -> Path:
    """Return a folder image with what a whole session needs: jupyterhub-singleuser."""
    lock = bootstrap.lock_file("session")

    def make(folder: Path) -> None:
        root = folder / "root"
        roots.copy(kernel_folder(), root)
        bootstrap.install_with_uv(lock, root / _SERVER)
        for name in ("jupyterhub-singleuser", "jupyter"):
            (root / "usr/local/bin" / name).symlink_to(Path("/", _SERVER, "bin", name))

    made_of = [str(kernel_folder()), bootstrap.content_hash([lock])]
    return roots.cached("image-session", made_of, make)


def session_image() -> Path:
    """Return the same as a SIF."""
    return _sif(session_folder())


def training_folder() -> Path:
    """Return a folder image with PyTorch, as the portal's own module has it."""
    lock = bootstrap.lock_file("kernel-pytorch")

    def make(folder: Path) -> None:
        root = folder / "root"
        roots.copy(kernel_folder(), root)
        bootstrap.install_with_uv(lock, root / TRAINING, sources=bootstrap.sources_of(lock.stem))
        # An environment knows itself by the folder that its Python is called from.
        python = root / "usr/local/bin/python"
        python.write_text(f'#!/bin/sh\nexec /{TRAINING}/bin/python "$@"\n')
        python.chmod(0o755)

    made_of = [str(kernel_folder()), bootstrap.content_hash([lock])]
    return roots.cached("image-training", made_of, make)


def training_image() -> Path:
    """Return the same as a SIF."""
    return _sif(training_folder())


def _sif(folder: Path) -> Path:
    """Return a SIF of a folder image, which everybody may read."""
    final = folder.with_suffix(".sif")
    with bootstrap.only_one(bootstrap.CACHE, final.name):
        if not final.exists():
            half = folder.with_name(f".{final.name}.building")
            half.unlink(missing_ok=True)
            building.call(
                # Half a gigabyte takes ten minutes at gzip's default level where much else runs.
                [
                    str(apptainer()),
                    "-q",
                    "build",
                    "--mksquashfs-args=-Xcompression-level 1",
                    str(half),
                    str(folder),
                ],
                seconds=600,
                PATH=os.defpath + ":/usr/sbin:/sbin",
            )
            half.chmod(0o644)
            half.rename(final)
    return final
