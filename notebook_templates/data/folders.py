"""Folders of pictures, one for each class: found in the same order for every framework."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from digits import DataError

SUFFIXES = (".jpg", ".jpeg", ".jpe", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")

Labelled = tuple[str, int]  # a file's path and the number of its class


@dataclass(frozen=True)
class PictureFolders:
    """What ``train`` and ``val`` of a folder hold."""

    names: list[str]
    """Of the classes: a class's number is its place here."""
    train: list[Labelled]
    test: list[Labelled] | None
    """``None`` where there is no ``val``."""

    def digest(self) -> str:
        """Return a SHA-256 that changes with the pictures, and not with where their folder is."""
        parts = (self.train, self.test or [])
        top = os.path.commonpath({os.path.dirname(path) for part in parts for path, _ in part})
        # Not relpath: of a million pictures it would take half a minute.
        below = [[(path[len(top) :].lstrip("/"), label) for path, label in part] for part in parts]
        told = json.dumps([self.names, *below])
        return hashlib.sha256(told.encode()).hexdigest()


def digest_of_shards(*places: Path) -> str:
    """Return a SHA-256 of the lists of all shards in folders, which say what is in each."""
    told = hashlib.sha256()
    for place in places:
        manifest = place / "manifest.json"
        told.update(hashlib.sha256(manifest.read_bytes() if manifest.exists() else b"").digest())
    return told.hexdigest()


def opened(folder: Path) -> PictureFolders:
    """Find the pictures of ``train/CLASS`` and ``val/CLASS``; raise DataError."""
    train, test = folder / "train", folder / "val"
    names = class_names(train)
    if not names:
        raise DataError(f"{train} has no class folders")
    if not test.is_dir():
        return PictureFolders(names, labelled(train, names), None)
    tested = class_names(test)
    for here, there, of_here, of_there in (
        (train, test, names, tested),
        (test, train, tested, names),
    ):
        if lacking := sorted(set(of_there) - set(of_here)):
            raise DataError(
                f"{here} has no folder {', '.join(lacking)}, which {there} has: classes are "
                "numbered by their folders, so both must have the same (one may be empty)"
            )
    return PictureFolders(names, labelled(train, names), labelled(test, names))


def class_names(folder: Path) -> list[str]:
    """Return the names of the class folders; a hidden one, as Jupyter's own, is none."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and is_seen(path))


def labelled(folder: Path, names: Sequence[str]) -> list[Labelled]:
    """Return the pictures of all classes, in a fixed order; raise DataError for none at all."""
    found = [
        (str(path), number)
        for number, name in enumerate(names)
        for path in pictures_in(folder / name)
    ]
    if not found:
        raise DataError(
            f"{folder} has no pictures in its folders {', '.join(names[:3])} ...: files that end "
            f"in {' '.join(SUFFIXES)} are"
        )
    return found


def pictures_in(folder: Path) -> list[Path]:
    """Return the files of a folder that are called pictures, in a fixed order."""
    return sorted(
        path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and is_seen(path)
    )


def is_seen(path: Path) -> bool:
    """Say whether a name is not hidden."""
    return not path.name.startswith(".")
