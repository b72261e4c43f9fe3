"""A folder of images, each with a record of where it comes from.

An image's file name has its digest, so that a new image of the same name is another file and none
that runs is replaced. A file gets its name when it is whole. So all of this holds whoever else
works in the folder; the lock is there only to spare a second download, and may fail to (a mount
with ``nolock`` knows it within one node only).
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from dsportal.images.errors import ImageError
from dsportal.images.size import bytes_in

_PARTS = ".partial"
_VERSION = 1
"""Of a record. A record that names none has 1: releases of before there were versions read it."""


@dataclass(frozen=True)
class ImageRecord:
    """Metadata of an image: its origin, digest and size."""

    file: str
    reference: str
    digest: str
    size: int
    """Of the file, in bytes."""
    pulled_at: str


@dataclass(frozen=True)
class ImageFolder:
    """Folder of images with their metadata."""

    folder: Path

    def records(self) -> list[ImageRecord]:
        """Return what is there; a record without its file, or one that makes no sense, is none.

        Raises:
            ImageError: a record is of a newer release.

        """
        found = []
        for file in sorted(self.folder.glob("*.sif.json")):
            try:
                record = _read(file)
            except (OSError, TypeError, ValueError):
                continue
            if f"{record.file}.json" == file.name and (self.folder / record.file).is_file():
                found.append(record)
        return found

    def find(self, digest: str, file: str) -> ImageRecord | None:
        """Return the image of this digest and name, where it is there whole."""
        wanted = (digest, file)
        return next((one for one in self.records() if (one.digest, one.file) == wanted), None)

    def used(self) -> int:
        """Return the bytes of all files in the folder, unfinished ones too."""
        return bytes_in(self.folder)

    def workplace(self, digest: str) -> Path:
        """Make the folder in which an image is put together; it stays until that is done."""
        folder = self.folder / _PARTS / digest.partition(":")[2]
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def put(self, made: Path, record: ImageRecord) -> None:
        """Let a finished file appear, its record first, and forget its parts."""
        text = json.dumps(asdict(record), indent=1)
        beside = made.with_suffix(".json")
        beside.write_text(text + "\n", encoding="utf-8")
        for file in (beside, made):
            file.chmod(0o644)
            with file.open("rb") as written:
                os.fsync(written.fileno())
        beside.replace(self.folder / f"{record.file}.json")
        made.replace(self.folder / record.file)
        shutil.rmtree(made.parent, ignore_errors=True)

    def lead(self, link: str, record: ImageRecord) -> None:
        """Let a link of the folder lead to an image; what runs what it led to before goes on."""
        place = self.folder / link
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name(f".{place.name}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(os.path.relpath(self.folder / record.file, place.parent))
        fresh.replace(place)

    @contextmanager
    def only_one(self, digest: str, *, minutes: float, wait: Callable[[], None]) -> Iterator[None]:
        """Hold the lock of an image; ``wait`` is called once where somebody else has it."""
        locks = self.folder / ".locks"
        locks.mkdir(mode=0o700, exist_ok=True)
        with (locks / digest.partition(":")[2]).open("w") as lock:
            deadline = time.monotonic() + minutes * 60
            while not _is_taken(lock.fileno()):
                wait()
                wait = _nothing
                if time.monotonic() > deadline:
                    raise ImageError(
                        f"Somebody else has been pulling this image for {minutes:g} minutes. Try "
                        "again later, or pull it into your own folder with --own"
                    )
                time.sleep(0.5)
            yield


def _read(file: Path) -> ImageRecord:
    content = dict(json.loads(file.read_text(encoding="utf-8")))
    version = content.pop("version", _VERSION)
    if isinstance(version, int) and version > _VERSION:
        raise ImageError(
            f"{file} has version {version}, and this command reads up to {_VERSION}: this host "
            "has an older release of the portal. Tell an administrator"
        )
    return ImageRecord(**content)


def _nothing() -> None:
    return


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
