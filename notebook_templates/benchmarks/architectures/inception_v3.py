"""Inception v3: eleven modules, whose large convolutions are divided into flat ones.

Szegedy et al.: Rethinking the Inception Architecture, 2015 (arXiv:1512.00567), table 1 and figures
5 to 7; the widths are those of the authors' own program. It has 23,834,568 parameters, and
27,161,264 with the head in between.
"""

from torch import nn

from architectures.branches import Branches, Tower, convolution, end, path

HEAD_AFTER = 8  # the last stage of 17x17 pixels


def build(classes: int, channels: int, heads: bool) -> Tower:
    """Build it for images of so many channels, 299 pixels wide; ``heads``: the one in between."""
    stages = [
        _stem(channels),
        _of_35(192, 32),
        _of_35(256, 64),
        _of_35(288, 64),
        _to_17(288),
        *(_of_17(width) for width in (128, 160, 160, 192)),
        _to_8(768),
        _of_8(1280),
        _of_8(2048),
    ]
    between = {HEAD_AFTER: _head(768, classes)} if heads else {}
    return Tower(stages, end(2048, classes, dropout=0.5), between)


def _stem(channels: int) -> nn.Module:
    return nn.Sequential(
        convolution(channels, 32, 3, stride=2, pad=False),
        convolution(32, 32, 3, pad=False),
        convolution(32, 64, 3),
        nn.MaxPool2d(3, 2),
        convolution(64, 80, 1),
        convolution(80, 192, 3, pad=False),
        nn.MaxPool2d(3, 2),
    )


def _pooled(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.AvgPool2d(3, 1, padding=1), convolution(inputs, outputs, 1))


def _of_35(inputs: int, pooled: int) -> nn.Module:
    return Branches(
        path(inputs, (64, 1)),
        path(inputs, (48, 1), (64, 5)),
        path(inputs, (64, 1), (96, 3), (96, 3)),
        _pooled(inputs, pooled),
    )


def _to_17(inputs: int) -> nn.Module:
    deep = [*path(inputs, (64, 1), (96, 3)), convolution(96, 96, 3, stride=2, pad=False)]
    wide = convolution(inputs, 384, 3, stride=2, pad=False)
    return Branches(wide, nn.Sequential(*deep), nn.MaxPool2d(3, 2))


def _of_17(width: int) -> nn.Module:
    flat, high = (1, 7), (7, 1)
    return Branches(
        path(768, (192, 1)),
        path(768, (width, 1), (width, flat), (192, high)),
        path(768, (width, 1), (width, high), (width, flat), (width, high), (192, flat)),
        _pooled(768, 192),
    )


def _to_8(inputs: int) -> nn.Module:
    short = [*path(inputs, (192, 1)), convolution(192, 320, 3, stride=2, pad=False)]
    seven = path(inputs, (192, 1), (192, (1, 7)), (192, (7, 1)))
    long = [*seven, convolution(192, 192, 3, stride=2, pad=False)]
    return Branches(nn.Sequential(*short), nn.Sequential(*long), nn.MaxPool2d(3, 2))


def _of_8(inputs: int) -> nn.Module:
    return Branches(
        path(inputs, (320, 1)),
        nn.Sequential(*path(inputs, (384, 1)), _both_flat()),
        nn.Sequential(*path(inputs, (448, 1), (384, 3)), _both_flat()),
        _pooled(inputs, 192),
    )


def _both_flat() -> nn.Module:
    return Branches(convolution(384, 384, (1, 3)), convolution(384, 384, (3, 1)))


def _head(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(
        nn.AvgPool2d(5, 3),
        convolution(inputs, 128, 1),
        convolution(128, 768, 5, pad=False),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(768, classes),
    )
