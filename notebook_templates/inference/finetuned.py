"""A network that the template *Fine-tune a vision transformer* has left, and pictures."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# The vision template has the modules that read them.
sys.path.append(str(Path(__file__).resolve().parent.parent / "vision"))
import classifier
import pictures

SHARE_TO_TEST = 0.2  # of pictures that are in class folders alone, as train_vit.py's default
SEED = 1
SHAPES = "shapes"  # what the training drew, in its folder


@dataclass(frozen=True)
class Part:
    """Pictures as the network takes them, shape (n, 3, size, size), and their labels."""

    images: np.ndarray
    labels: np.ndarray


def opened(
    checkpoint: Path, data: str, most_to_train: int
) -> tuple[classifier.Classifier, Part, Part]:
    """Read a folder ``best`` and pictures to calibrate with and to test with.

    ``data``: the folder that was trained on; "" for the shapes that the training drew.
    ``most_to_train``: pictures of the training part that are read, chosen evenly.
    """
    model = classifier.read(checkpoint)
    share, seed = _split_of(checkpoint.parent)
    found = pictures.opened(data or str(checkpoint.parent / SHAPES), share, seed)
    if found.names != model.names:
        raise classifier.ClassifierError(
            f"{checkpoint} knows the classes {', '.join(model.names)}; the folder of pictures has "
            f"{', '.join(found.names)}"
        )
    # Evenly over all: they are sorted by class, so the first ones would lack the last classes.
    there, count = len(found.train), min(most_to_train, len(found.train))
    chosen = [found.train[number * there // count] for number in range(count)]
    parts = []
    for files in (chosen, found.test or []):
        pixels, labels = pictures.as_bytes(files, model.size)
        parts.append(Part(np.asarray(model.normal(pixels)), labels.numpy().astype(np.int32)))
    model.network.eval().requires_grad_(False)
    return model, parts[0], parts[1]


def _split_of(run: Path) -> tuple[float, int]:
    """Return which share a training held out, and by which seed: the others it was trained on."""
    kept = run / "settings.json"
    told = json.loads(kept.read_text()) if kept.exists() else {}
    return told.get("held_out", SHARE_TO_TEST), told.get("seed", SEED)
