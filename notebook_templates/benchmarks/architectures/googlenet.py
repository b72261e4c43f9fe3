"""GoogLeNet: nine modules of four paths each.

Szegedy et al.: Going Deeper with Convolutions, 2014 (arXiv:1409.4842), table 1; with normalisation,
and 3x3 in the third path, as the networks are built that most measurements since use. So it has
6,624,904 parameters, and 13,004,888 with the two heads in between.
"""

from torch import nn

from architectures.branches import Branches, Tower, convolution, end, path

# Channels in, 1x1; 1x1 and then 3x3; 1x1 and then 3x3; after pooling.
MODULES = {
    "3a": (192, 64, 96, 128, 16, 32, 32),
    "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64),
    "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64),
    "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}
POOLS = {"3b": 3, "4e": 2}  # sizes of those after modules
HEADS_AFTER = {"4a": 512, "4d": 528}


def build(classes: int, channels: int, heads: bool) -> Tower:
    """Build it for images of so many channels, 224 pixels wide; ``heads``: those in between."""
    names = ["stem", *MODULES]
    stages = [_stem(channels), *(_stage(name) for name in MODULES)]
    between = {
        names.index(name): _head(inputs, classes) for name, inputs in HEADS_AFTER.items() if heads
    }
    return Tower(stages, end(1024, classes, dropout=0.2), between)


def _pool(size: int) -> nn.Module:
    return nn.MaxPool2d(size, 2, ceil_mode=True)


def _stem(channels: int) -> nn.Module:
    return nn.Sequential(
        convolution(channels, 64, 7, stride=2), _pool(3), path(64, (64, 1), (192, 3)), _pool(3)
    )


def _stage(name: str) -> nn.Module:
    inputs, one, to_three, three, to_five, five, pooled = MODULES[name]
    branches = Branches(
        path(inputs, (one, 1)),
        path(inputs, (to_three, 1), (three, 3)),
        path(inputs, (to_five, 1), (five, 3)),
        nn.Sequential(nn.MaxPool2d(3, 1, padding=1), convolution(inputs, pooled, 1)),
    )
    return nn.Sequential(branches, _pool(POOLS[name])) if name in POOLS else branches


def _head(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(
        nn.AdaptiveAvgPool2d(4),
        convolution(inputs, 128, 1),
        nn.Flatten(),
        nn.Linear(2048, 1024),
        nn.ReLU(inplace=True),
        nn.Dropout(0.7),
        nn.Linear(1024, classes),
    )
