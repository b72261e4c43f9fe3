"""A network by its name: one of ours, timm's, or a function of the user's."""

import importlib
import sys
from pathlib import Path

import resnet
from stages import MODELS
from torch import nn


class NetworkError(ValueError):
    """There is no such network; the message names it and says what may be given."""


def build(model: str, classes: int, channels: int = 3) -> nn.Module:
    """Build one of `stages.MODELS`, "timm:NAME", or what a function makes of classes and channels.

    "MODULE:FUNCTION", or "/a/path/FILE.py:FUNCTION"; raises `NetworkError` where it is not found.
    """
    if model in MODELS:
        return resnet.build(model, classes, channels)
    module, colon, name = model.rpartition(":")
    if not colon or not module or not name:
        raise NetworkError(
            f"model is {model!r}; it must be one of {', '.join(MODELS)}, timm:NAME, "
            "MODULE:FUNCTION or FILE.py:FUNCTION"
        )
    if module.endswith(".py"):
        file = Path(module).expanduser()
        sys.path.insert(0, str(file.parent))
        module = file.stem
    try:
        found = importlib.import_module(module)
        if module == "timm":
            return found.create_model(name, num_classes=classes, in_chans=channels)
        function = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise NetworkError(f"model is {model!r}: {error}") from error
    return function(classes, channels)
