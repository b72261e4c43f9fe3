"""Models that are loaded: a language model (text_model.py), or a network that names images."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# The model is files; without this they are looked for on the internet first.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# How images are read is among the templates for vision and data.
sys.path += [
    str(Path(__file__).resolve().parent.parent / place)
    for place in ("vision", "distributed", "data")
]
import classifier
import crops
import torch
import transformers
from completions import RequestError
from digits import DataError
from model_folders import ModelFolder, ModelFolderError
from text_model import TextModel

TOP = 5  # classes that an image is given


@dataclass(frozen=True)
class ClassProbability:
    """How likely an image is of a class."""

    name: str
    probability: float


class ImageModel:
    """A network that gives images one of the classes that it has learned."""

    def __init__(self, folder: ModelFolder, device: torch.device) -> None:
        """Read it, and the names of its classes."""
        self._model = classifier.read(folder.path)
        self._network = self._model.network.to(device).eval()
        self._device = device

    def classified(self, images: Sequence[bytes]) -> list[list[ClassProbability] | Exception]:
        """Name the likeliest classes of files of images; one that is none gets a `RequestError`."""
        answers: dict[int, list[ClassProbability] | Exception] = {}
        pixels = {}
        for index, encoded in enumerate(images):
            try:
                pixels[index] = crops.in_the_middle(encoded, self._model.size)
            except DataError as error:
                answers[index] = RequestError(f"the image {error}")
        if pixels:
            together = torch.stack(list(pixels.values())).to(self._device)
            with torch.inference_mode():
                shares = self._network(self._model.normal(together)).softmax(1).cpu()
            answers |= dict(zip(pixels, map(self._likeliest, shares), strict=True))
        return [answers[index] for index in range(len(images))]

    def _likeliest(self, shares: torch.Tensor) -> list[ClassProbability]:
        found = shares.topk(min(TOP, len(self._model.names)))
        return [
            ClassProbability(self._model.names[number], round(share, 6))
            for share, number in zip(found.values.tolist(), found.indices.tolist(), strict=True)
        ]


def read(folder: ModelFolder) -> TextModel | ImageModel:
    """Load a model, on the GPU if there is one; raises `ModelFolderError`."""
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kinds = {"text": TextModel, "image": ImageModel}
    try:
        return kinds[folder.kind](folder, device)
    except torch.OutOfMemoryError as error:
        raise ModelFolderError(f"{folder.path} does not fit into the GPU's memory") from error
    # What transformers and safetensors raise for files that are damaged or do not fit together.
    except Exception as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelFolderError(f"{folder.path} cannot be loaded: {said[0]}") from error
