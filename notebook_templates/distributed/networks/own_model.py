"""A network by its name: one of ours, timm's, or a function of the user's."""

import own_function
from torch import nn

from networks import resnet
from networks.stages import MODELS


class NetworkError(ValueError):
    """There is no such network; the message names it and says what may be given."""


def build(model: str, classes: int, channels: int = 3) -> nn.Module:
    """Build one of `stages.MODELS`, "timm:NAME", or what a function makes of classes and channels.

    "MODULE:FUNCTION", or "/a/path/FILE.py:FUNCTION"; raises `NetworkError` where it is not found.
    """
    if model in MODELS:
        return resnet.build(model, classes, channels)
    if model.startswith("timm:"):
        return _of_timm(model.removeprefix("timm:"), classes, channels)
    try:
        function = own_function.find(model)
    except own_function.FunctionError as error:
        others = f"{', '.join(MODELS)}, timm:NAME"
        raise NetworkError(f"model is none of {others}, and {error}") from error
    network: nn.Module = function(classes, channels)
    return network


def _of_timm(name: str, classes: int, channels: int) -> nn.Module:
    try:
        import timm

        network: nn.Module = timm.create_model(name, num_classes=classes, in_chans=channels)
    except (ImportError, RuntimeError) as error:
        # RuntimeError: timm has no such network, or torchvision is built for another PyTorch.
        raise NetworkError(f"model is 'timm:{name}': {error}") from error
    return network
