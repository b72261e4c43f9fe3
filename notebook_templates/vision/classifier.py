"""A vision transformer as a folder: read with pretrained weights, or made tiny; and written.

The folder is Hugging Face's: ``config.json`` with the classes' names and the size of pictures,
``model.safetensors``, and ``preprocessor_config.json`` with the mean and deviation of pixels.
Any of transformers' networks for ``AutoModelForImageClassification`` will do: ViT, DeiT, DINOv2,
Swin, ConvNeXt.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# The model is files; without this they are looked for on the internet first.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import transformers
from torch import nn

PREPARED = "preprocessor_config.json"
TINY = {
    "image_size": 32, "patch_size": 8, "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 128, "hidden_dropout_prob": 0.05,
}  # fmt: skip


class ClassifierError(ValueError):
    """The model cannot be used; the message says why."""


@dataclass(frozen=True)
class Classifier:
    """A network, and what it must be known of it to give it a picture."""

    network: nn.Module
    names: list[str]
    """Of the classes."""
    size: int
    """Height and width of a picture, in pixels."""
    mean: tuple[float, ...]
    """Of each channel, of values from 0 to 1."""
    deviation: tuple[float, ...]

    def normal(self, pixels: torch.Tensor) -> torch.Tensor:
        """Make bytes of shape (n, height, width, 3) what the network takes."""
        mean, deviation = _of_bytes(self.mean, self.deviation, pixels.device)
        numbers = pixels.permute(0, 3, 1, 2).to(
            torch.float32, memory_format=torch.contiguous_format
        )
        return numbers.sub_(mean).div_(deviation)


@cache
def _of_bytes(
    mean: tuple[float, ...], deviation: tuple[float, ...], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and deviation of bytes; once, since a GPU waits for what comes from Python."""
    of = torch.tensor((mean, deviation), device=device).mul_(255).view(2, 3, 1, 1)
    return of[0], of[1]


class Logits(nn.Module):
    """A network of transformers, from pictures of shape (n, 3, height, width) to logits alone."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Give the logits of images."""
        return self.network(pixel_values=images).logits


def make_tiny(folder: Path, seed: int) -> None:
    """Write a vision transformer that has learned nothing: to try things out."""
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(seed)
    network = transformers.ViTForImageClassification(transformers.ViTConfig(**TINY))
    write(folder, Classifier(network, ["any", "other"], TINY["image_size"], (0.5,) * 3, (0.5,) * 3))


def read(folder: Path, names: Sequence[str] | None = None) -> Classifier:
    """Read a network; with other ``names`` its last layer begins anew.

    Raises `ClassifierError` for a folder that has none.
    """
    if not (folder / "config.json").exists():
        raise ClassifierError(
            f"model is {str(folder)!r}; there is no such folder with a config.json"
        )
    transformers.utils.logging.disable_progress_bar()
    # That the last layer has another size than the file's is what is wanted.
    transformers.utils.logging.set_verbosity_error()
    others = {} if names is None else {
        "id2label": dict(enumerate(names)),
        "label2id": {name: number for number, name in enumerate(names)},
        "ignore_mismatched_sizes": True,
    }  # fmt: skip
    try:
        network = transformers.AutoModelForImageClassification.from_pretrained(
            str(folder),
            local_files_only=True,
            # A model's own code is not run, and nobody is asked at a prompt whether it may be.
            trust_remote_code=False,
            dtype=torch.float32,
            **others,
        )
    except (OSError, ValueError) as error:
        raise ClassifierError(f"model is {str(folder)!r}: {error}") from error
    # Pretraining alone masks patches; processes that train together wait for each weight that may
    # learn.
    for name, weight in network.named_parameters():
        if name.endswith("mask_token"):
            weight.requires_grad_(False)
    size = getattr(network.config, "image_size", None) or 224
    prepared = folder / PREPARED
    told = json.loads(prepared.read_text()) if prepared.exists() else {}
    classes = [network.config.id2label[number] for number in range(network.config.num_labels)]
    return Classifier(
        Logits(network),
        classes,
        size if isinstance(size, int) else size[0],
        tuple(told.get("image_mean", (0.5,) * 3)),
        tuple(told.get("image_std", (0.5,) * 3)),
    )


def write(folder: Path, what: Classifier, more: Mapping[str, str] | None = None) -> None:
    """Write it into a folder, in the place of what was there; ``more``: files beside it."""
    building = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(building, ignore_errors=True)
    network = what.network.network if isinstance(what.network, Logits) else what.network
    network.save_pretrained(building)
    told = {
        "image_processor_type": "ViTImageProcessor",
        "do_normalize": True,
        "image_mean": what.mean,
        "image_std": what.deviation,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_resize": True,
        "size": {"height": what.size, "width": what.size},
    }
    (building / PREPARED).write_text(json.dumps(told, indent=1))
    for name, text in (more or {}).items():
        (building / name).write_text(text)
    # Whoever is ended between the two leaves the one before under another name, and not none.
    before = folder.with_name(f".{folder.name}.before")
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.rename(before)
    building.rename(folder)
    shutil.rmtree(before, ignore_errors=True)
