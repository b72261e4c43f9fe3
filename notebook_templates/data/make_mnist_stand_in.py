"""Write a stand-in for MNIST where the real data set cannot be had.

    python make_mnist_stand_in.py DESTINATION

Four files in MNIST's own IDX format and under its own names: 28x28 grey digits with their labels,
30,000 to train on and 5,000 to test with. They are made from the 1,797 handwritten digits of 8x8
pixels that scikit-learn brings along: turned, scaled, slanted and shifted copies. The originals are
divided first, so that no test image is a copy of something trained on. The same bytes each time.

Files that this program did not write are left alone: it never overwrites the real MNIST.
"""

import gzip
import struct
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mnist_files
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import affine_transform
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 28
TRAIN_COPIES = 30_000
TEST_COPIES = 5_000
TEST_SHARE = 0.2  # of the originals
SIDE = 28  # pixels, as MNIST's
DIGIT_SIDE = 20  # pixels that a digit fills, as MNIST's

# How far a copy may be from its original; each is drawn evenly from plus or minus this.
TURN_DEGREES = 12.0
SCALE = 0.12
SLANT = 0.15
SHIFT_PIXELS = 2.0

IMAGES_MAGIC = 2051  # MNIST's own numbers for unsigned bytes in 3 and in 1 dimension
LABELS_MAGIC = 2049

README = f"""\
{mnist_files.STAND_IN}

These are NOT the images of MNIST. They have its format, file names and kind, and were made from the
1,797 digits of scikit-learn's `load_digits` (8x8 pixels): turned, scaled, slanted and shifted
copies, {TRAIN_COPIES:,} to train on and {TEST_COPIES:,} to test with. No original is in both parts.

`fetch_mnist.py` among the templates puts the real data set here.
"""

Images = NDArray[np.uint8]
Labels = NDArray[np.uint8]


@dataclass(frozen=True)
class Originals:
    """8x8 digits with values from 0 to 16, and their labels."""

    images: NDArray[np.float64]
    labels: NDArray[np.int64]


def divide_originals() -> tuple[Originals, Originals]:
    """Return the originals to train on and those to test with; none is in both."""
    digits = load_digits()
    train, test = train_test_split(
        np.arange(len(digits.target)),
        test_size=TEST_SHARE,
        stratify=digits.target,
        random_state=SEED,
    )
    return (
        Originals(digits.images[train], digits.target[train]),
        Originals(digits.images[test], digits.target[test]),
    )


def copies(
    originals: Originals, count: int, generator: np.random.Generator
) -> tuple[Images, Labels]:
    """Return ``count`` changed copies of originals drawn evenly, with their labels."""
    chosen = generator.integers(len(originals.labels), size=count)
    images = np.empty((count, SIDE, SIDE), np.uint8)
    for index, original in enumerate(chosen):
        images[index] = changed_copy(originals.images[original], generator)
    return images, originals.labels[chosen].astype(np.uint8)


def changed_copy(original: NDArray[np.float64], generator: np.random.Generator) -> Images:
    """Return one 28x28 copy, turned, scaled, slanted and shifted at random."""
    angle = np.deg2rad(generator.uniform(-TURN_DEGREES, TURN_DEGREES))
    scale = DIGIT_SIDE / original.shape[0] * (1 + generator.uniform(-SCALE, SCALE))
    slant = generator.uniform(-SLANT, SLANT)
    shift = generator.uniform(-SHIFT_PIXELS, SHIFT_PIXELS, size=2)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    # affine_transform asks where each pixel of the copy comes from.
    matrix = turn @ np.array([[1.0, 0.0], [slant, 1.0]]) / scale
    centre_of_copy = np.array([SIDE - 1, SIDE - 1]) / 2 + shift
    centre_of_original = (np.array(original.shape) - 1) / 2
    copy = affine_transform(
        original,
        matrix,
        offset=centre_of_original - matrix @ centre_of_copy,
        order=3,
        output_shape=(SIDE, SIDE),
    )
    return np.clip(copy * (255 / 16), 0, 255).astype(np.uint8)


def idx_files() -> Iterator[tuple[str, bytes]]:
    """Make the four files: name and content."""
    train, test = divide_originals()
    generator = np.random.default_rng(SEED)
    for part, originals, count in (("train", train, TRAIN_COPIES), ("t10k", test, TEST_COPIES)):
        images, labels = copies(originals, count, generator)
        header = struct.pack(">IIII", IMAGES_MAGIC, count, SIDE, SIDE)
        yield f"{part}-images-idx3-ubyte.gz", compressed(header + images.tobytes())
        header = struct.pack(">II", LABELS_MAGIC, count)
        yield f"{part}-labels-idx1-ubyte.gz", compressed(header + labels.tobytes())


def compressed(content: bytes) -> bytes:
    """Return gzip's form of the content, the same bytes each time."""
    return gzip.compress(content, compresslevel=6, mtime=0)


def write(destination: Path) -> bool:
    """Write the stand-in; return ``False`` when other files are there, which stay as they are."""
    if any(destination.glob("*-ubyte*")) and not mnist_files.is_stand_in(destination):
        return False
    destination.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination, prefix=".making-") as name:
        # First the README: files without it are taken for the real ones.
        for file_name, content in [("README.md", README.encode()), *idx_files()]:
            made = Path(name, file_name)
            made.write_bytes(content)
            made.chmod(0o644)
            made.replace(destination / file_name)
    return True


def main() -> None:
    """Write into the folder that the command line names."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    destination = Path(sys.argv[1])
    if write(destination):
        print(f"{destination} has the stand-in for MNIST.")
    else:
        print(f"{destination} has other data; it is left as it is.")


if __name__ == "__main__":
    main()
