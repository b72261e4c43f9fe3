"""Inception v4: a stem that divides, and fourteen modules of four paths.

Szegedy, Ioffe, Vanhoucke, Alemi: Inception-v4, Inception-ResNet and the Impact of Residual
Connections on Learning, 2016 (arXiv:1602.07261), figures 3 to 9, without a head in between, as the
authors' weights are published. It has 42,679,816 parameters.
"""

from torch import nn

from architectures.branches import Branches, Tower, convolution, end, path

FLAT, HIGH = (1, 7), (7, 1)


def build(classes: int, channels: int) -> Tower:
    """Build it for images of so many channels, 299 pixels wide."""
    stages = [
        convolution(channels, 32, 3, stride=2, pad=False),
        convolution(32, 32, 3, pad=False),
        convolution(32, 64, 3),
        Branches(nn.MaxPool2d(3, 2), convolution(64, 96, 3, stride=2, pad=False)),
        _stem_4(),
        Branches(convolution(192, 192, 3, stride=2, pad=False), nn.MaxPool2d(3, 2)),
        *(_of_35() for _ in range(4)),
        _to_17(),
        *(_of_17() for _ in range(7)),
        _to_8(),
        *(_of_8() for _ in range(3)),
    ]
    return Tower(stages, end(1536, classes, dropout=0.2), {})


def _pooled(inputs: int, outputs: int) -> nn.Module:
    # What is outside of the image does not count in the mean, as it does in v3.
    mean = nn.AvgPool2d(3, 1, padding=1, count_include_pad=False)
    return nn.Sequential(mean, convolution(inputs, outputs, 1))


def _stem_4() -> nn.Module:
    return Branches(
        nn.Sequential(convolution(160, 64, 1), convolution(64, 96, 3, pad=False)),
        nn.Sequential(
            *path(160, (64, 1), (64, FLAT), (64, HIGH)), convolution(64, 96, 3, pad=False)
        ),
    )


def _of_35() -> nn.Module:
    return Branches(
        convolution(384, 96, 1),
        path(384, (64, 1), (96, 3)),
        path(384, (64, 1), (96, 3), (96, 3)),
        _pooled(384, 96),
    )


def _to_17() -> nn.Module:
    deep = [*path(384, (192, 1), (224, 3)), convolution(224, 256, 3, stride=2, pad=False)]
    wide = convolution(384, 384, 3, stride=2, pad=False)
    return Branches(wide, nn.Sequential(*deep), nn.MaxPool2d(3, 2))


def _of_17() -> nn.Module:
    return Branches(
        convolution(1024, 384, 1),
        path(1024, (192, 1), (224, FLAT), (256, HIGH)),
        path(1024, (192, 1), (192, HIGH), (224, FLAT), (224, HIGH), (256, FLAT)),
        _pooled(1024, 128),
    )


def _to_8() -> nn.Module:
    short = [convolution(1024, 192, 1), convolution(192, 192, 3, stride=2, pad=False)]
    seven = path(1024, (256, 1), (256, FLAT), (320, HIGH))
    long = [*seven, convolution(320, 320, 3, stride=2, pad=False)]
    return Branches(nn.Sequential(*short), nn.Sequential(*long), nn.MaxPool2d(3, 2))


def _of_8() -> nn.Module:
    return Branches(
        convolution(1536, 256, 1),
        nn.Sequential(convolution(1536, 384, 1), _both_flat(384)),
        nn.Sequential(*path(1536, (384, 1), (448, (3, 1)), (512, (1, 3))), _both_flat(512)),
        _pooled(1536, 256),
    )


def _both_flat(inputs: int) -> nn.Module:
    return Branches(convolution(inputs, 256, (1, 3)), convolution(inputs, 256, (3, 1)))
