"""A picture as a network takes it: resized, its middle cut out, its values normal.

All with Pillow, and in the order of torchvision's and timm's evaluation: their published figures
are of pictures that were resized before they were cut, and decoded at full size.
"""

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

# jpegs.py is among the templates for data, beside this folder.
sys.path += [str(Path(__file__).resolve().parents[2] / "data")]
import jpegs

from imagenet.validation import ImagenetError, Labelled

BILINEAR, BICUBIC = Image.Resampling.BILINEAR, Image.Resampling.BICUBIC


@dataclass(frozen=True)
class Normal:
    """The mean and deviation of each channel, of values from 0 to 1."""

    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]


IMAGENETS = Normal((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALVES = Normal((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


@dataclass(frozen=True)
class Preparation:
    """What a network's pictures go through."""

    resize: int
    """Pixels of the shorter side, before it is cut."""
    crop: int
    """Height and width of what is cut out of the middle."""
    normal: Normal
    resampling: Image.Resampling = BILINEAR

    def image(self, encoded: bytes) -> np.ndarray:
        """Return a picture as numbers of shape (3, crop, crop); raise jpegs.PictureError."""
        with jpegs.opened(encoded) as opened:
            whole = opened.convert("RGB")
        shorter = min(whole.size)
        small = whole.resize(
            [self.resize * side // shorter for side in whole.size], self.resampling
        )
        left, upper = (round((side - self.crop) / 2) for side in small.size)
        middle = small.crop((left, upper, left + self.crop, upper + self.crop))
        mean, deviation = (
            np.array(of, np.float32) for of in (self.normal.mean, self.normal.deviation)
        )
        pixels = (np.asarray(middle, np.float32) / 255 - mean) / deviation
        return np.ascontiguousarray(pixels.transpose(2, 0, 1))

    def read(self, path: Path) -> np.ndarray:
        """Return a file's picture; raise ImagenetError."""
        try:
            return self.image(path.read_bytes())
        except (OSError, jpegs.PictureError) as error:
            raise ImagenetError(f"{path} {error}") from error


def batches(
    preparation: Preparation, pictures: Sequence[Labelled], size: int, threads: Executor
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give all pictures in batches of one size, and their labels.

    The last batch is filled up with pictures that have no label of their own: it has fewer labels.
    While a batch is used, the next one is read.
    """
    parts = [pictures[first : first + size] for first in range(0, len(pictures), size)]
    read = [threads.submit(preparation.read, path) for path, _ in parts[0]] if parts else []
    for number, part in enumerate(parts):
        coming, read = read, [
            threads.submit(preparation.read, path)
            for path, _ in (parts[number + 1] if number + 1 < len(parts) else [])
        ]  # fmt: skip
        images = np.stack([one.result() for one in coming])
        filled = np.concatenate([images, np.repeat(images[:1], size - len(images), axis=0)])
        yield filled, np.array([label for _, label in part])
