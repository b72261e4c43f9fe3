"""Made-up images for frameworks other than PyTorch, which makes its own of the same bytes."""

import sys
from pathlib import Path

import numpy as np

# cuts.py is among the templates for data.
sys.path += [str(Path(__file__).resolve().parents[2] / "data")]
import cuts

CLASSES = 1000
# Of bytes, per channel.
MEAN, DEVIATION = (np.array(values, np.float32) * 255 for values in (cuts.MEAN, cuts.DEVIATION))


def batch(images: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return bytes (images, size, size, 3), which become numbers on the device only, and labels."""
    pixels = np.random.default_rng(0).integers(0, 256, (images, size, size, 3), np.uint8)
    return pixels, np.arange(images) % CLASSES
