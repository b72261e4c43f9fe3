"""JPEG files in folders, one folder for each class: found, checked and enlarged."""

import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

SUFFIXES = (".jpg", ".jpeg")
FIRST_BYTES, LAST_BYTES = b"\xff\xd8\xff", b"\xff\xd9"


class PictureError(Exception):
    """A file that is no whole JPEG picture; the text says why."""


@dataclass(frozen=True)
class JpegSource:
    """A file and the class that its folder stands for."""

    path: str  # below the folder of all classes
    label: int
    bytes: int


@dataclass(frozen=True)
class JpegImage:
    """A checked picture as it goes into a shard; height and width in pixels."""

    key: str
    path: str
    label: int
    class_name: str
    encoded: bytes
    height: int
    width: int


def find(folder: Path, first_label: int = 0) -> tuple[list[str], list[JpegSource]]:
    """Return the names of the classes and all files that are called JPEG, in a fixed order."""
    classes = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    found = []
    for label, name in enumerate(classes, first_label):
        for path in sorted((folder / name).iterdir()):
            if path.suffix.lower() in SUFFIXES and path.is_file():
                source = JpegSource(f"{name}/{path.name}", label, path.stat().st_size)
                found.append(source)
    return classes, found


def size_of(encoded: bytes) -> tuple[int, int]:
    """Return height and width; raise PictureError where the data is no whole JPEG picture.

    Decoded at an eighth of its size: that reads every byte, but computes few pixels.
    """
    if not encoded.startswith(FIRST_BYTES):
        raise PictureError("is not a JPEG file")
    try:
        with Image.open(io.BytesIO(encoded), formats=["JPEG"]) as image:
            width, height = image.size
            image.draft("RGB", (width // 8, height // 8))
            image.load()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise PictureError(f"cannot be decoded: {error}") from error
    if LAST_BYTES not in encoded[-1024:]:  # some cameras write a few bytes behind the end
        raise PictureError("is cut short: it has no end mark")
    return height, width


def enlarged(encoded: bytes, times: int) -> bytes:
    """Resize by ``times`` in height and width, at quality 100 (the papers' larger data set)."""
    with Image.open(io.BytesIO(encoded), formats=["JPEG"]) as image:
        size = (image.width * times, image.height * times)
        large = image.convert("RGB").resize(size, Image.Resampling.BICUBIC)
    written = io.BytesIO()
    large.save(written, "JPEG", quality=100)
    return written.getvalue()
