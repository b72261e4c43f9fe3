"""Top-1 and top-5 of a pretrained network at each precision, over ImageNet's validation images."""

import random
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# precisions.py is the template's that shows step by step how this works.
sys.path += [str(Path(__file__).resolve().parents[2] / "inference")]
import precisions
from torch import nn

from imagenet import preparing
from imagenet.preparing import Preparation
from imagenet.validation import ImagenetError, Labelled
from imagenet.weights import Weights, loaded

BATCH = 100  # images in one call, at most
TOP = (1, 5)


@dataclass(frozen=True)
class Chosen:
    """Pictures to calibrate int8 with, and others to test all precisions with."""

    calibration: Sequence[Labelled]
    batch: int
    """Of the calibration."""
    test: Sequence[Labelled]


def chosen(pictures: Sequence[Labelled], batches: int, batch: int, most: int, seed: int) -> Chosen:
    """Take the first ``batches`` of ``batch`` pictures to calibrate with, the others to test with.

    So the papers did. First are those first by their files' names, whose order says nothing of the
    classes in ImageNet; the order of class folders would begin with a few classes. ``most``: how
    many to test with, drawn from the others; 0: all. Raises ImagenetError where there are too few.
    """
    count = batches * batch
    if len(pictures) <= count:
        raise ImagenetError(
            f"{batches} batches of {batch} to calibrate with need {count:,} images, and others to "
            f"test with; there are {len(pictures):,}"
        )
    by_name = sorted(pictures, key=lambda picture: picture[0].name)
    first, others = by_name[:count], sorted(by_name[count:])
    if 0 < most < len(others):
        others = sorted(random.Random(seed).sample(others, most))  # noqa: S311
    return Chosen(first, batch, others)


def measured(weights: Weights, pictures: Chosen, folder: Path, threads: int) -> dict[str, Any]:
    """Measure a network from its file; raise WeightsError where that cannot be used.

    ``folder``: for the network as ONNX, which takes as much room as the weights; it is removed.
    """
    network = loaded(weights)
    try:
        found = of_network(network, weights.preparation, pictures, folder, threads)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    told = {"network": weights.model, "weights": weights.name, **found}
    if published := weights.published:
        told["published"] = [published.top1 / 100, published.top5 / 100]
    return told


def of_network(
    network: nn.Module, preparation: Preparation, pictures: Chosen, folder: Path, threads: int
) -> dict[str, Any]:
    """Measure a network: top-1 and top-5, shares of 1, by precision, and what is lacking."""
    with ThreadPoolExecutor(threads) as readers:
        examples = np.stack(
            list(readers.map(preparation.read, [path for path, _ in pictures.calibration]))
        )
        calibration = precisions.Calibration(
            examples, len(examples) // pictures.batch, pictures.batch
        )
        built = precisions.build(network, folder, calibration, examples[:2])
        ready = [one for one in built if isinstance(one, precisions.Precision)]
        counts = {one.name: np.zeros(len(TOP), int) for one in ready}
        batch = min(BATCH, len(pictures.test))
        for images, labels in preparing.batches(preparation, pictures.test, batch, readers):
            for one in ready:
                logits = one.run(images)[: len(labels)]
                counts[one.name] += precisions.hits(logits, labels, TOP)
    shares = {name: count / len(pictures.test) for name, count in counts.items()}
    return {
        "images": len(pictures.test),
        "calibration_images": len(pictures.calibration),
        "top1": {name: round(float(share[0]), 6) for name, share in shares.items()},
        "top5": {name: round(float(share[1]), 6) for name, share in shares.items()},
        "engines": {one.name: one.engine for one in ready},
        "lacking": {one.name: one.lacking for one in built if one not in ready},
    }
