"""Pictures in folders, one folder for each class: found, checked and made JPEG."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from folders import class_names, pictures_in
from PIL import Image

FIRST_BYTES, LAST_BYTES = b"\xff\xd8\xff", b"\xff\xd9"
SCAN = b"\xff\xda"
"""Where pixels begin (ITU-T T.81, B.2.3): behind a thumbnail, which has all of these, too."""


class PictureError(Exception):
    """A file that is no whole picture; the text says why."""


@dataclass(frozen=True)
class JpegSource:
    """A picture's file and the class that its folder stands for."""

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
    """Return the names of the classes and all files that are called pictures, in a fixed order."""
    classes = class_names(folder)
    found = []
    for label, name in enumerate(classes, first_label):
        for path in pictures_in(folder / name):
            if path.is_file():
                source = JpegSource(f"{name}/{path.name}", label, path.stat().st_size)
                found.append(source)
    return classes, found


def size_of(encoded: bytes) -> tuple[int, int]:
    """Return height and width; raise PictureError where the data is no whole picture.

    JPEG is decoded at an eighth of its size: that reads every byte, but computes few pixels.
    """
    if not encoded.startswith(FIRST_BYTES):
        return decoded(encoded).shape[:2]
    with opened(encoded, "JPEG") as image:
        width, height = image.size
        image.draft("RGB", (max(1, width // 8), max(1, height // 8)))
        image.load()
    if not has_end(encoded):
        raise PictureError("is truncated: it has no end-of-image marker")
    return height, width


def has_end(encoded: bytes) -> bool:
    """Say whether a JPEG picture's pixels come to an end; cameras put a film, say, behind it."""
    at = 2
    while at + 4 <= len(encoded) and encoded[at] == 0xFF and encoded[at : at + 2] != SCAN:
        # Any number of bytes 255 may stand before a code; other segments say their length.
        code = encoded[at + 1]
        at += 1 if code == 0xFF else 2 + int.from_bytes(encoded[at + 2 : at + 4])
    return encoded.rfind(LAST_BYTES, min(at, len(encoded) - 2)) >= 0


def decoded(encoded: bytes) -> Any:
    """Decode a picture of any kind, as bytes of shape (height, width, 3); raise PictureError.

    Of several pictures in a file it is the first. Numbers of 16 bits keep their upper eight.
    """
    with opened(encoded) as image:
        if image.mode.startswith("I"):
            numbers = np.asarray(image).astype(np.uint32) >> 8
            return np.repeat(numbers.astype(np.uint8)[..., np.newaxis], 3, axis=2)
        return np.array(image.convert("RGB"))


def as_jpeg(encoded: bytes) -> bytes:
    """Return a picture as JPEG: itself where it is one, else at quality 100 with all colours."""
    if encoded.startswith(FIRST_BYTES):
        return encoded
    written = io.BytesIO()
    Image.fromarray(decoded(encoded)).save(written, "JPEG", quality=100, subsampling=0)
    return written.getvalue()


@contextmanager
def opened(encoded: bytes, *kinds: str) -> Iterator[Any]:
    """Open a picture with Pillow; raise PictureError, also for what is found while it is read."""
    try:
        with Image.open(io.BytesIO(encoded), formats=kinds or None) as image:
            yield image
    except Image.UnidentifiedImageError as error:
        raise PictureError("is not a picture, or of a kind that is not known") from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise PictureError(f"cannot be decoded: {error}") from error


def enlarged(encoded: bytes, times: int) -> bytes:
    """Resize by ``times`` in height and width, at quality 100 (the papers' larger data set)."""
    with Image.open(io.BytesIO(encoded), formats=["JPEG"]) as image:
        size = (image.width * times, image.height * times)
        large = image.convert("RGB").resize(size, Image.Resampling.BICUBIC)
    written = io.BytesIO()
    large.save(written, "JPEG", quality=100)
    return written.getvalue()
