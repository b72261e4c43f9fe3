"""MNIST's files, for the notebooks of every framework: needs NumPy and the module beside it."""

import gzip
import hashlib
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import mnist_files
import numpy as np

IMAGES_MAGIC = 2051
LABELS_MAGIC = 2049


class DataError(Exception):
    """The data set is not there, or is not what it should be."""


@dataclass(frozen=True)
class Digits:
    """Images with values from 0 to 1, shape (n, 28, 28, 1), and their labels, shape (n,)."""

    images: np.ndarray
    labels: np.ndarray


def load(folder: Path) -> tuple[Digits, Digits]:
    """Read MNIST's four files; return the part to train on and the part to test with."""
    return _part(folder, "train"), _part(folder, "t10k")


def _part(folder: Path, name: str) -> Digits:
    images = read_images(folder / f"{name}-images-idx3-ubyte.gz")
    labels = read_labels(folder / f"{name}-labels-idx1-ubyte.gz")
    if len(images) != len(labels):
        raise DataError(f"{folder}: {len(images)} images of {name}, but {len(labels)} labels")
    return Digits(images[..., np.newaxis].astype(np.float32) / 255, labels.astype(np.int32))


def origin(folder: Path) -> str:
    """Say in one sentence whose digits these are, by what is in the files."""
    if mnist_files.is_mnist(folder):
        return "MNIST's own four files"
    if mnist_files.is_stand_in(folder):
        return f"NOT MNIST but a stand-in made from scikit-learn's digits; see {folder}/README.md"
    return "not MNIST's own files: other digits in its format"


def read_images(file: Path) -> np.ndarray:
    """Read an IDX file of images: unsigned bytes, shape (n, rows, columns)."""
    content = _content(file)
    magic, count, rows, columns = _head(content, 4)
    if magic != IMAGES_MAGIC or len(content) != 16 + count * rows * columns:
        raise DataError(f"{file} is not an IDX file of images, or is cut short")
    return np.frombuffer(content, np.uint8, offset=16).reshape(count, rows, columns)


def read_labels(file: Path) -> np.ndarray:
    """Read an IDX file of labels: unsigned bytes, shape (n,)."""
    content = _content(file)
    magic, count = _head(content, 2)
    if magic != LABELS_MAGIC or len(content) != 8 + count:
        raise DataError(f"{file} is not an IDX file of labels, or is cut short")
    return np.frombuffer(content, np.uint8, offset=8)


def digest(folder: Path) -> str:
    """Return a SHA-256 by which other digits are told, however their files were compressed."""
    told = hashlib.sha256()
    for name in mnist_files.SHA256:
        told.update(hashlib.sha256(_content(folder / f"{name}.gz")).digest())
    return told.hexdigest()


def _head(content: bytes, numbers: int) -> tuple[int, ...]:
    """Return what a file begins with; zeros where it is too short, as none does."""
    return struct.unpack_from(f">{numbers}I", content.ljust(4 * numbers, b"\0"))


def _content(file: Path) -> bytes:
    try:
        return gzip.decompress(file.read_bytes())
    except FileNotFoundError:
        message = f"{file} is missing; set data_dir in the second cell, or ask for the data set"
        raise DataError(message) from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file} cannot be read: {error}") from error
