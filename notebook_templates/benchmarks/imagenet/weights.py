"""Pretrained weights in files: which belong to a network, and what their publisher measured.

The files' names are torchvision's, and timm's for Inception v4; a file of one's own may be called
as the network is, for example ``vgg16.safetensors``.
"""

import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import nn

from architectures import networks, published_names
from imagenet.preparing import BICUBIC, HALVES, IMAGENETS, Preparation
from imagenet.validation import CLASSES

INSIDE = "model.safetensors"  # as Hugging Face calls it; the folder around it tells the network


class WeightsError(ValueError):
    """A network cannot be had from the files; the message names the file and says why."""


@dataclass(frozen=True)
class Published:
    """Weights that can be downloaded; the figures are of the 50,000 images at fp32, in per cent."""

    file: str
    """Without its suffix."""
    top1: float
    top5: float
    resize: int = 0
    """Where it is another than the network's: pixels."""


@dataclass(frozen=True)
class Pretrained:
    """A network whose weights come from a file."""

    called: str
    """How its files begin: a pattern."""
    preparation: Preparation
    published: tuple[Published, ...]


_PLAIN = Preparation(256, 224, IMAGENETS)
NETWORKS = {
    "resnet50": Pretrained(
        "resnet50",
        _PLAIN,
        (
            Published("resnet50-0676ba61", 76.13, 92.862),
            Published("resnet50-11ad3fa6", 80.858, 95.434, resize=232),
        ),
    ),
    "resnet101": Pretrained(
        "resnet101",
        _PLAIN,
        (
            Published("resnet101-63fe2227", 77.374, 93.546),
            Published("resnet101-cd907fc2", 81.886, 95.78, resize=232),
        ),
    ),
    "resnet152": Pretrained(
        "resnet152",
        _PLAIN,
        (
            Published("resnet152-394f9c45", 78.312, 94.046),
            Published("resnet152-f82ba261", 82.284, 96.002, resize=232),
        ),
    ),
    "vgg16": Pretrained("vgg16", _PLAIN, (Published("vgg16-397923af", 71.592, 90.382),)),
    "vgg19": Pretrained("vgg19", _PLAIN, (Published("vgg19-dcbb9e9d", 72.376, 90.876),)),
    # With these weights torchvision's GoogLeNet and Inception v3 take ImageNet's mean and deviation
    # out again, and put halves in their place.
    "googlenet": Pretrained(
        "googlenet",
        Preparation(256, 224, HALVES),
        (Published("googlenet-1378be20", 69.778, 89.53),),
    ),
    "alexnet": Pretrained(
        "alexnet(-owt)?", _PLAIN, (Published("alexnet-owt-7be5be79", 56.522, 79.066),)
    ),
    "inception3": Pretrained(
        "inception(3|_v3(_google)?)",
        Preparation(342, 299, HALVES),
        (Published("inception_v3_google-0cc3c7bd", 77.294, 93.45),),
    ),
    "inception4": Pretrained(
        r"inception(4|_v4)(\.tf_in1k)?",
        Preparation(341, 299, HALVES, BICUBIC),
        (Published("inception_v4.tf_in1k", 80.156, 94.968),),
    ),
}
"""The papers' nine. Published: torchvision 0.28's own figures; timm's results-imagenet.csv."""


@dataclass(frozen=True)
class Weights:
    """A network's file."""

    model: str
    path: Path
    name: str
    """The file's name, or its folder's where that tells the network."""

    @property
    def published(self) -> Published | None:
        """Say what was measured of it by those who published it."""
        stem = self.name.rpartition(".")[0]
        return next((one for one in NETWORKS[self.model].published if one.file == stem), None)

    @property
    def preparation(self) -> Preparation:
        """Say what pictures go through for it."""
        usual = NETWORKS[self.model].preparation
        if self.published and self.published.resize:
            return replace(usual, resize=self.published.resize)
        return usual


def found(folder: Path, model: str) -> Weights:
    """Find a network's file; raise WeightsError."""
    pattern = re.compile(rf"{NETWORKS[model].called}(-\w+)?\.(pth|safetensors)")
    named = {path.name: path for path in folder.glob("*") if path.is_file()}
    named |= {f"{path.parent.name}.safetensors": path for path in folder.glob(f"*/{INSIDE}")}
    ours = sorted(name for name in named if pattern.fullmatch(name))
    if not ours:
        usual = NETWORKS[model].published[0].file
        suffix = ".safetensors" if "." in usual else ".pth"
        raise WeightsError(f"{folder} has no weights of it, such as {usual}{suffix}")
    if len(ours) > 1:
        raise WeightsError(f"{folder} has several of it, {', '.join(ours)}: leave one there")
    return Weights(model, named[ours[0]], ours[0])


def loaded(weights: Weights) -> nn.Module:
    """Build the network and fill it from its file; raise WeightsError where that does not fit."""
    return filled(weights.model, _read(weights.path), weights.name)


def filled(model: str, there: Mapping[str, torch.Tensor], name: str) -> nn.Module:
    """Build a network with published weights; ``name``: what to call them where they do not fit."""
    with torch.device("meta"):
        network = networks.build(model, CLASSES)
    parts = published_names.pairs(model)
    ours = {key: _published(key, parts) for key in network.state_dict()}
    _check({ours[key]: value for key, value in network.state_dict().items()}, there, name)
    # Older files do not have the number of batches that a normalisation has seen.
    none = torch.zeros((), dtype=torch.long)
    network.load_state_dict(
        {key: there.get(theirs, none) for key, theirs in ours.items()}, assign=True
    )
    return network.float().eval()


def _published(key: str, parts: Mapping[str, str]) -> str:
    part, _, of_part = key.rpartition(".")
    return f"{parts[part]}.{of_part}"


def _read(path: Path) -> dict[str, torch.Tensor]:
    try:
        if path.suffix == ".safetensors":
            return dict(safetensors.torch.load_file(path))
        there = torch.load(path, map_location="cpu", weights_only=True)
    except (
        OSError,
        RuntimeError,
        EOFError,
        pickle.UnpicklingError,
        safetensors.SafetensorError,
    ) as error:
        words = str(error).splitlines() or [type(error).__name__]
        raise WeightsError(f"{path} cannot be read: {words[0]}") from error
    if not isinstance(there, Mapping) or not all(
        isinstance(one, torch.Tensor) for one in there.values()
    ):
        raise WeightsError(f"{path} holds no state_dict, which is tensors by their names")
    return dict(there)


def _check(
    wanted: Mapping[str, torch.Tensor], there: Mapping[str, torch.Tensor], name: str
) -> None:
    """Compare a network's tensors with a file's; raise WeightsError."""
    last = [*wanted][-1]
    if last in there and len(there[last]) != CLASSES:
        raise WeightsError(f"{name} is for {len(there[last]):,} classes; ImageNet has 1,000")
    needed = {key for key in wanted if not key.endswith("num_batches_tracked")}
    if lacking := sorted(needed - there.keys()):
        raise WeightsError(f"{name} does not fit: it lacks {_some(lacking)}")
    if more := sorted(key for key in there.keys() - wanted.keys() if not _is_between(key)):
        raise WeightsError(f"{name} does not fit: the network has no {_some(more)}")
    for key in sorted(needed):
        if (here := tuple(wanted[key].shape)) != (shape := tuple(there[key].shape)):
            raise WeightsError(f"{name} does not fit: {key} is {shape}, in the network {here}")


def _is_between(key: str) -> bool:
    return key.startswith(published_names.HEADS_BETWEEN)


def _some(keys: list[str]) -> str:
    return keys[0] if len(keys) == 1 else f"{keys[0]} and {len(keys) - 1} more"
