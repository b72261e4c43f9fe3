"""A part of a picture, drawn, decoded and resized: what reading images costs most.

libjpeg-turbo decodes JPEG, by simplejpeg; Pillow all other kinds. Where a site's own PyTorch has no
simplejpeg, Pillow decodes JPEG too, with the same result, but takes longer.
"""

import io
import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from cuts import CENTRE_SHARE, RATIO, SHARE
from digits import DataError
from jpegs import FIRST_BYTES, PictureError, decoded, has_end
from PIL import Image
from torch.nn import functional

try:
    import simplejpeg
except ImportError:
    simplejpeg = None

Box = tuple[int, int, int, int]  # left, upper, right, lower, in pixels

# How a picture's size is stored (ITU-T T.81, B.1.1.3 and B.2.2): the codes of the segments that
# have it, of all ways of coding but arithmetic and lossless ones. With the first two, rows follow
# each other.
FRAMES, IN_ORDER = (0xC0, 0xC1, 0xC2), (0xC0, 0xC1)
BLOCKS = 16  # rows that are decoded together, at most


def at_random(
    encoded: bytes, size: int, chance: random.Random, least: float = SHARE[0]
) -> torch.Tensor:
    """Return a random part of a picture, half of the times mirrored; raise DataError.

    ``least``: the smallest share of the picture's area.
    """
    picture = opened(encoded)
    part = picture.part(random_box(picture.extent, chance, least), size)
    return part.flip(1) if chance.random() < 0.5 else part


def in_the_middle(encoded: bytes, size: int) -> torch.Tensor:
    """Return the middle of a picture; raise DataError."""
    picture = opened(encoded)
    return picture.part(centre_box(picture.extent), size)


def random_box(extent: tuple[int, int], chance: random.Random, least: float = SHARE[0]) -> Box:
    """Draw a part of a picture of this width and height."""
    width, height = extent
    for _ in range(10):
        area = width * height * chance.uniform(least, SHARE[1])
        ratio = math.exp(chance.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < high <= height:
            left, upper = chance.randint(0, width - wide), chance.randint(0, height - high)
            return left, upper, left + wide, upper + high
    return centre_box(extent)


def centre_box(extent: tuple[int, int]) -> Box:
    """Return the square in the middle of a picture."""
    width, height = extent
    side = max(1, round(min(extent) * CENTRE_SHARE))
    left, upper = (width - side) // 2, (height - side) // 2
    return left, upper, left + side, upper + side


@dataclass(frozen=True)
class Jpeg:
    """A whole JPEG picture and what its head says."""

    encoded: bytes
    extent: tuple[int, int]
    """Width and height."""
    colours: int
    is_in_order: bool
    """Whether the rows follow each other, so that a decoder can end after some."""
    height_at: int
    """Where the head has the height, two bytes."""

    def part(self, box: Box, size: int) -> torch.Tensor:
        """Decode a part, resized to (size, size, 3), values 0 to 255.

        A part that is much larger than ``size`` is decoded at 1/2, 1/4 or 1/8, and begins and ends
        at whole pixels of that. EXIF's orientation is left alone, as frameworks do. Raises
        DataError.
        """
        side = min(box[2] - box[0], box[3] - box[1])
        times = next((times for times in (8, 4, 2) if side // times >= size), 1)
        decode = by_simplejpeg if simplejpeg and self.colours != 4 else by_pillow
        pixels = decode(self, box[3], times)
        left, upper, right, lower = (at // times for at in box)
        return resized(torch.from_numpy(pixels[upper:lower, left:right]), size)


@dataclass(frozen=True)
class Decoded:
    """A picture of another kind than JPEG: all of it is decoded at once."""

    pixels: Any

    @property
    def extent(self) -> tuple[int, int]:
        """Width and height."""
        height, width, _ = self.pixels.shape
        return width, height

    def part(self, box: Box, size: int) -> torch.Tensor:
        """Return a part, resized to (size, size, 3), values 0 to 255."""
        left, upper, right, lower = box
        return resized(torch.from_numpy(self.pixels[upper:lower, left:right]), size)


def opened(encoded: bytes) -> Jpeg | Decoded:
    """Read the head of a JPEG picture, or all of another; raise DataError where it is not whole."""
    if not encoded.startswith(FIRST_BYTES):
        try:
            return Decoded(decoded(encoded))
        except PictureError as error:
            raise DataError(str(error)) from error
    if not has_end(encoded):
        raise DataError("is truncated: it has no end-of-image marker")
    at = 2
    while at + 10 <= len(encoded) and encoded[at] == 0xFF:
        code = encoded[at + 1]
        if code in FRAMES:
            height, width = (int.from_bytes(encoded[at + n : at + n + 2]) for n in (5, 7))
            if not width or not height:
                break
            return Jpeg(encoded, (width, height), encoded[at + 9], code in IN_ORDER, at + 5)
        # Any number of bytes 255 may stand before a code; other segments say their length.
        at += 1 if code == 0xFF else 2 + int.from_bytes(encoded[at + 2 : at + 4])
    raise DataError("has no size in its header, or an encoding that is not supported")


def by_simplejpeg(jpeg: Jpeg, lower: int, times: int) -> Any:
    """Decode the rows down to ``lower`` at least, as pixels of shape (rows, columns, 3).

    A decoder that is told a smaller height ends there. Some rows more, since colours are
    interpolated between rows. To it, the rest is bytes without meaning; not to be strict lets that
    pass.
    """
    width, height = jpeg.extent
    encoded: bytes | bytearray = jpeg.encoded
    needed = (lower // BLOCKS + 1) * BLOCKS
    if jpeg.is_in_order and needed < height:
        height, encoded = needed, bytearray(encoded)
        encoded[jpeg.height_at : jpeg.height_at + 2] = height.to_bytes(2)
    try:
        return simplejpeg.decode_jpeg(
            encoded,
            min_height=-(-height // times),
            min_width=-(-width // times),
            min_factor=times,
            strict=False,
        )
    except ValueError as error:
        raise DataError(f"cannot be decoded: {error}") from error


def by_pillow(jpeg: Jpeg, lower: int, times: int) -> Any:
    """Decode all rows; ``lower`` is not needed."""
    width, height = jpeg.extent
    try:
        with Image.open(io.BytesIO(jpeg.encoded), formats=["JPEG"]) as image:
            image.draft("RGB", (width // times, height // times))
            return np.array(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"cannot be decoded: {error}") from error


def resized(pixels: torch.Tensor, size: int) -> torch.Tensor:
    """Resize bilinearly; where pixels become fewer, all of them count."""
    # PyTorch's fast way for bytes is the one for channels that are last in memory.
    batch = pixels.permute(2, 0, 1).unsqueeze(0).contiguous(memory_format=torch.channels_last)
    small = functional.interpolate(batch, (size, size), mode="bilinear", antialias=True)
    return small[0].permute(1, 2, 0)
