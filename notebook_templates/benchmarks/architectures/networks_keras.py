"""Build one of `models.SIZES` with Keras: ResNets as PyTorch's here, the others as Keras has them.

Keras's own Inception v3 has no scale in its norms (23,851,784 parameters), its VGG-16 no dropout.
"""

import sys
from pathlib import Path

import keras

from architectures import models

# The package networks is among the templates for several nodes.
sys.path += [str(Path(__file__).resolve().parents[2] / "distributed")]
from networks import resnet_keras

_OF_KERAS = {"inception3": keras.applications.InceptionV3, "vgg16": keras.applications.VGG16}


def build(model: str, size: int, classes: int = 1000) -> keras.Model:
    """Build a network that gives a logit per class of images so many pixels high and wide."""
    if model in models.RESNETS:
        is_v1 = model in models.V1
        return resnet_keras.build(models.RESNETS[model], classes, size, is_v1=is_v1)
    return _OF_KERAS[model](
        weights=None,
        input_shape=(size, size, 3),
        classes=classes,
        classifier_activation=None,
    )
