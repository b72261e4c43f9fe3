"""A folder of the user's own on a mount: the one place where a measurement writes.

It is opened once and used by its descriptor, so nobody who may write to the mount can put another
folder, or a link, in its place meanwhile.
"""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

GB = 1e9
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_QUOTA = ("/usr/bin/quota", "--no-wrap", "--raw-grace", "--filesystem-list")
_SECONDS = 10
_TRIES = 100
# quota(1) with --raw-grace: file system, KiB used (* when over), soft and hard limit, and more.
_LINE = re.compile(r"\s*\S+\s+(\d+)\*?\s+(\d+)\s+(\d+)\s+\d+(?:\s+\d+\*?){4}\s*")


class OwnFolderError(RuntimeError):
    """A mount cannot be measured on; the message says why and what to do."""


def name() -> str:
    """Return what the user's folder is called on each mount."""
    return f"measuring-{os.geteuid()}"


@dataclass(frozen=True)
class OwnFolder:
    """The folder of one run on one mount."""

    mount: Path
    run: str
    parent: int
    """The descriptor of the folder of all runs."""
    descriptor: int

    @property
    def path(self) -> str:
        """Lead to it, in this process and in those that inherit the descriptor."""
        # The dot, because fio takes no link for a folder.
        return f"/proc/self/fd/{self.descriptor}/."

    def free_bytes(self) -> int:
        """Return how much this user may still write here: free space, or what the quota leaves."""
        told = os.fstatvfs(self.descriptor)
        free = told.f_bavail * told.f_frsize
        left = quota_left(mount_point(self.mount))
        return free if left is None else min(free, left)

    def used_bytes(self) -> int:
        """Return the size of the files that are here."""
        with os.scandir(self.descriptor) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)

    def need(self, size_bytes: int) -> None:
        """Raise `OwnFolderError` where files of this size in all do not fit."""
        more, free = size_bytes - self.used_bytes(), self.free_bytes()
        if more > free:
            raise OwnFolderError(
                f"{self.mount} has {free / GB:,.1f} GB left for you, and the files take "
                f"{more / GB:,.1f} GB more: choose smaller or fewer files, or fewer clients"
            )

    def file(self, name: str) -> int:
        """Open a file that is here; returns its descriptor."""
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self.descriptor)

    def remove(self) -> None:
        """Remove the run's folder, and that of all runs when it was the last."""
        shutil.rmtree(self.run, ignore_errors=True, dir_fd=self.parent)
        # Another run's may be there, or another client was first.
        with suppress(OSError):
            (self.mount / name()).rmdir()

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)
        os.close(self.parent)


def open_own(mount: Path, run: str) -> OwnFolder:
    """Make the run's folder on a mount, or open it.

    Raises `OwnFolderError` where there is no mount, or what has the folder's name is another's.
    """
    tries = 0
    with _opened_mount(mount) as top:
        while True:
            try:
                return _own(mount, run, top, makes=True)
            except FileNotFoundError:
                # A run that ends takes the folder of all runs away, where no other's is in it yet.
                tries += 1
                if tries == _TRIES:
                    raise


def remove_own(mount: Path, run: str) -> None:
    """Remove the run's folder from a mount, if no other client was first.

    Raises `OwnFolderError` as `open_own` does.
    """
    with _opened_mount(mount) as top, suppress(FileNotFoundError):
        folder = _own(mount, run, top, makes=False)
        folder.remove()
        folder.close()


def _own(mount: Path, run: str, top: int, *, makes: bool) -> OwnFolder:
    parent = _opened(mount / name(), top, name(), makes=makes)
    try:
        descriptor = _opened(mount / name() / run, parent, run, makes=makes)
    except BaseException:
        os.close(parent)
        raise
    return OwnFolder(mount, run, parent, descriptor)


@contextmanager
def _opened_mount(mount: Path) -> Iterator[int]:
    try:
        top = os.open(mount, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield top
        finally:
            os.close(top)
    except OSError as error:
        raise OwnFolderError(
            f"{mount} cannot be measured on: {error.strerror} ({error.filename})"
        ) from error


def _opened(path: Path, above: int, called: str, *, makes: bool) -> int:
    if makes:
        with suppress(FileExistsError):
            os.mkdir(called, 0o700, dir_fd=above)
    try:
        descriptor = os.open(called, _FLAGS, dir_fd=above)
    except NotADirectoryError as error:
        raise OwnFolderError(f"{path} is not a folder; a measurement writes only there") from error
    told = os.fstat(descriptor)
    if told.st_uid != os.geteuid() or told.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        os.close(descriptor)
        raise OwnFolderError(
            f"{path} is not yours alone (owner {told.st_uid}, mode {stat.filemode(told.st_mode)}); "
            "a measurement writes only into a folder of your own: ask its owner to remove it"
        )
    return descriptor


def mount_point(path: Path) -> Path:
    """Return where the file system of a path begins."""
    path = path.resolve()
    return next(place for place in (path, *path.parents) if os.path.ismount(place))


def quota_left(mount: Path) -> int | None:
    """Return the bytes that the user's quota leaves; ``None`` where nobody knows of one."""
    try:
        done = subprocess.run(
            [*_QUOTA, str(mount)],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env={"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return left_of(done.stdout.splitlines())


def left_of(lines: Iterable[str]) -> int | None:
    """Read what quota(1) says of one file system: the limit, hard before soft, less the use."""
    for line in lines:
        if match := _LINE.fullmatch(line):
            used, soft, hard = (int(number) * 1024 for number in match.groups())
            if hard or soft:
                return max(0, (hard or soft) - used)
    return None
