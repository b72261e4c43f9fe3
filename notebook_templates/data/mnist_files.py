"""What MNIST's four files are known by: standard library only."""

import gzip
import hashlib
import zlib
from pathlib import Path

SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""Of each file's content, not of its compressed form, which depends on the program."""

STAND_IN = "# A stand-in for MNIST"
"""How the README.md beside the stand-in begins."""


def is_part(name: str, content: bytes) -> bool:
    """Say whether this is MNIST's own file of that name, without ``.gz``."""
    return hashlib.sha256(content).hexdigest() == SHA256[name]


def is_mnist(folder: Path) -> bool:
    """Say whether the folder has MNIST's own four files."""
    try:
        return all(
            is_part(name, gzip.decompress((folder / f"{name}.gz").read_bytes())) for name in SHA256
        )
    except (OSError, EOFError, zlib.error):
        return False


def is_stand_in(folder: Path) -> bool:
    """Say whether the folder has what `make_mnist_stand_in.py` writes."""
    try:
        return (folder / "README.md").read_text(encoding="utf-8").startswith(STAND_IN)
    except (OSError, UnicodeDecodeError):
        return False
