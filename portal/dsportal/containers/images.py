"""Validation of images, without running them: whether a file or folder is one that may be run."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from dsportal.containers.sif import HEADER, MARK

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class ImageFileError(Exception):
    """An image cannot be used; the message says why, and what to do, for the user."""


@dataclass(frozen=True)
class ImageFile:
    """An image that was looked at."""

    path: Path
    stamp: str
    """Changes when the image does."""
    is_folder: bool = False
    """What is changed deep in a folder does not change its stamp."""


def site_image(path: Path) -> ImageFile:
    """Look at an image that the settings name. Raises `ImageFileError`."""
    return _looked_at(path)


def own_image(path: Path, user: int) -> ImageFile:
    """Look at an image in a user's own folder, which nobody else may have put or changed there.

    Raises `ImageFileError`.
    """
    for place in (path.parent, path):
        _refuse_others(place, user)
    return _looked_at(path)


def own_images(folder: Path) -> list[Path]:
    """Return what may be images in a user's folder: SIF files, folders, and links to such."""
    try:
        found = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [path for path in found if _may_be_one(path)]


def _may_be_one(path: Path) -> bool:
    return not path.name.startswith(".") and (path.suffix == ".sif" or path.is_dir())


def _refuse_others(place: Path, user: int) -> None:
    try:
        status = place.lstat()
    except OSError as error:
        raise ImageFileError(f"{place} cannot be looked at: {error.strerror}.") from error
    if stat.S_ISLNK(status.st_mode):
        raise ImageFileError(f"{place} is a link. Put the image itself there: move or copy it.")
    if status.st_uid not in (0, user):
        raise ImageFileError(f"{place} belongs to another user. Copy it, so that it is yours.")
    if status.st_mode & _OTHERS_MAY_WRITE:
        raise ImageFileError(f"Others may change {place}. Take that from them: chmod go-w {place}")


def _looked_at(path: Path) -> ImageFile:
    try:
        # A pipe in the place of an image would keep who opens it waiting.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise ImageFileError(f"There is no image {path}.") from error
    except PermissionError as error:
        raise ImageFileError(f"You may not read the image {path}. Ask who owns it.") from error
    except OSError as error:
        raise ImageFileError(f"The image {path} cannot be read: {error.strerror}.") from error
    try:
        return _read(path, file)
    finally:
        os.close(file)


def _read(path: Path, file: int) -> ImageFile:
    status = os.fstat(file)
    times = f"{status.st_mtime_ns}:{status.st_ctime_ns}"
    stamp = f"{path}:{status.st_ino}:{status.st_size}:{times}"
    if stat.S_ISDIR(status.st_mode):
        if not os.path.lexists(path / "bin/sh"):
            raise ImageFileError(
                f"{path} is no image: a folder that is one holds a whole system, with /bin/sh."
            )
        return ImageFile(path, stamp, is_folder=True)
    if not stat.S_ISREG(status.st_mode):
        raise ImageFileError(f"{path} is no image: neither a file nor a folder.")
    _refuse_incomplete(path, os.read(file, HEADER.size), status.st_size)
    return ImageFile(path, stamp)


def _refuse_incomplete(path: Path, header: bytes, size: int) -> None:
    if len(header) < HEADER.size or header[32:42] != MARK:
        raise ImageFileError(f"{path} is no image: not a file that Apptainer has built (SIF).")
    *_, data_start, data_length = HEADER.unpack(header)
    whole = data_start + data_length
    if size < whole:
        raise ImageFileError(
            f"{path} is cut short: {size} of {whole} bytes are there. Copy or build it again."
        )
