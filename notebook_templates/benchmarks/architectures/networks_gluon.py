"""Build one of `models.SIZES` with MXNet: ResNets as PyTorch's here, the others as Gluon has them.

Gluon's own ResNets are v1 only, with biases that the paper's have not.
"""

import sys
from pathlib import Path
from typing import Any

from mxnet.gluon import HybridBlock, nn
from mxnet.gluon.model_zoo import vision

from architectures import models

# The package networks is among the templates for several nodes.
sys.path += [str(Path(__file__).resolve().parents[2] / "distributed")]
from networks.stages import EXPANSION, stages_of, strides_of

_OF_GLUON = {"alexnet": vision.alexnet, "inception3": vision.inception_v3, "vgg16": vision.vgg16}


def build(model: str, classes: int = 1000) -> HybridBlock:
    """Build a network that gives a logit per class."""
    if model not in models.RESNETS:
        return _OF_GLUON[model](classes=classes)
    stages, is_v1 = stages_of(models.RESNETS[model]), model in models.V1
    inputs = stages[0][1]
    network = nn.HybridSequential()
    network.add(convolution(inputs, 7, 2), norm(), nn.Activation("relu"), nn.MaxPool2D(3, 2, 1))
    for stage, (count, width) in enumerate(stages):
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            network.add(GluonBottleneck(inputs, width, stride, is_v1))
            inputs = width * EXPANSION
    network.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(classes))
    return network


def convolution(outputs: int, size: int, stride: int = 1) -> nn.Conv2D:
    """Keep the images' size, up to the stride; without a bias."""
    return nn.Conv2D(outputs, size, stride, size // 2, use_bias=False)


def norm(start: str = "ones") -> nn.BatchNorm:
    """Normalise each channel over the batch."""
    return nn.BatchNorm(epsilon=1e-5, gamma_initializer=start)


class GluonBottleneck(HybridBlock):
    """1x1 to few channels, 3x3, 1x1 to many; added to what came in."""

    def __init__(self, inputs: int, width: int, stride: int, is_v1: bool) -> None:
        super().__init__()
        outputs, strides = width * EXPANSION, strides_of(stride, is_v1)
        self.body, self.shortcut = nn.HybridSequential(), nn.HybridSequential()
        self.body.add(
            *(convolution(width, 1, strides[0]), norm(), nn.Activation("relu")),
            *(convolution(width, 3, strides[1]), norm(), nn.Activation("relu")),
            *(convolution(outputs, 1), norm("zeros")),
        )
        if stride != 1 or inputs != outputs:
            self.shortcut.add(convolution(outputs, 1, stride), norm())

    def hybrid_forward(self, F: Any, images: Any) -> Any:  # noqa: N803  # Gluon's own name
        """Add what the three convolutions make of the images to the images."""
        return F.relu(self.body(images) + self.shortcut(images))
