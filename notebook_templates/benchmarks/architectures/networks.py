"""Build one of `models.SIZES` with PyTorch."""

import sys
from pathlib import Path

from torch import nn

from architectures import googlenet, inception_v3, inception_v4, models, stacked

# The package networks is among the templates for several nodes.
sys.path += [str(Path(__file__).resolve().parents[2] / "distributed")]
from networks import resnet


def build(model: str, classes: int = 1000, channels: int = 3, heads: bool = False) -> nn.Module:
    """Build a network that gives a logit per class.

    ``heads``: with those that GoogLeNet and Inception v3 have in between while they learn.
    """
    if model in models.RESNETS:
        return resnet.build(models.RESNETS[model], classes, channels, model in models.V1)
    network = _build(model, classes, channels, heads)
    network.apply(resnet.start_values)
    return network


def _build(model: str, classes: int, channels: int, heads: bool) -> nn.Module:
    match model:
        case "alexnet":
            return stacked.alexnet(classes, channels)
        case "vgg16" | "vgg19":
            return stacked.vgg(model, classes, channels)
        case "googlenet":
            return googlenet.build(classes, channels, heads)
        case "inception3":
            return inception_v3.build(classes, channels, heads)
        case "inception4":
            return inception_v4.build(classes, channels)
    raise ValueError(f"there is no network {model!r}")
