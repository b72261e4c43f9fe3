"""Trees of files and folders with their owners and modes, as one tar file."""

import fnmatch
import os
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from dsportal.backup import owners
from dsportal.backup.manifest import BackupError

_ROOT = "root"


def pack(place: Path, to: Path, without: Sequence[str]) -> None:
    """Write a file or folder that may change meanwhile.

    slurmctld writes its state to new files that take the old ones' names, so each is whole. The
    files of a folder come before the folders in it: a job that the state knows has its script
    below, unless it has ended since.
    """
    with tarfile.open(to, "w") as tar:
        for path in _walk(place):
            if not any(fnmatch.fnmatch(path.name, pattern) for pattern in without):
                _add(tar, path, place)


def _walk(place: Path) -> Iterator[Path]:
    yield place
    if place.is_symlink() or not place.is_dir():
        return
    for folder, folders, files in os.walk(place):
        folders.sort()
        links = [name for name in folders if Path(folder, name).is_symlink()]
        yield from (Path(folder, name) for name in sorted([*files, *links]))
        yield from (Path(folder, name) for name in folders if name not in links)


def _add(tar: tarfile.TarFile, path: Path, place: Path) -> None:
    name = str(Path(_ROOT, path.relative_to(place)))
    try:
        if path.is_symlink() or not path.is_file():
            member = tar.gettarinfo(path, name)
            if member is not None and (member.isdir() or member.issym()):
                tar.addfile(member)
            return
        # What is opened is what is written, whatever takes its name meanwhile.
        with path.open("rb") as content:
            tar.addfile(tar.gettarinfo(arcname=name, fileobj=content), content)
    except FileNotFoundError:
        if path == place:
            raise BackupError(f"{place} is not there: change the settings ([backup])") from None


def check(archive: Path, place: Path) -> None:
    """Look whether a file or folder can be put back, and change nothing.

    Raises:
        BackupError: it cannot; why, in one line.

    """
    _check_place(place)
    with tarfile.open(archive) as tar:
        _checked(tar)


def unpack(archive: Path, place: Path, aside: Path) -> None:
    """Put a file or folder back, after all of `check`; what stands in its place goes aside."""
    _check_place(place)
    building = _building(place)
    with tarfile.open(archive) as tar:
        members = _checked(tar)
        building.mkdir(mode=0o700, parents=True)
        tar.extraction_filter = lambda member, _: member
        tar.extractall(building, members)  # noqa: S202  # each was checked above
    if place.exists() or place.is_symlink():
        place.rename(aside)
    (building / _ROOT).rename(place)
    building.rmdir()


def _building(place: Path) -> Path:
    return place.with_name(f".{place.name}.restoring")


def _check_place(place: Path) -> None:
    building = _building(place)
    if building.exists():
        raise BackupError(f"{building} is in the way: another restore runs, or has failed there")
    if place.is_mount():
        raise BackupError(
            f"{place} is a file system of its own, which cannot go aside: unmount it and restore; "
            "then move what came back away, mount it again, and copy that into it (cp -a)"
        )


def _checked(tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """Return an archive's members, each of which may be put back."""
    links: set[Path] = set()
    for member in tar:
        _check(member)
        path = Path(member.name)
        # Whose folder it is may put a link in a folder's place while it is packed.
        if not links.isdisjoint(path.parents):
            raise BackupError(f"the backup holds {member.name!r}, which lies below a link")
        if member.issym():
            links.add(path)
    return tar.getmembers()


def _check(member: tarfile.TarInfo) -> None:
    parts = Path(member.name).parts
    if parts[:1] != (_ROOT,) or ".." in parts:
        raise BackupError(f"the backup holds {member.name!r}, which would leave its folder")
    owners.check(member.uname, member.gname)
