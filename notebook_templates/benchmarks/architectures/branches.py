"""Networks whose layers divide into paths: what GoogLeNet and Inception v3 are made of.

Szegedy et al.: Going Deeper with Convolutions, 2014 (arXiv:1409.4842); Rethinking the Inception
Architecture, 2015 (arXiv:1512.00567), whose normalisation after each convolution both have here.
"""

from collections.abc import Sequence

import torch
from torch import nn

Size = int | tuple[int, int]


def convolution(
    inputs: int, outputs: int, size: Size, stride: int = 1, pad: bool = True
) -> nn.Module:
    """Make a convolution, normalised, without negative values; padded, it keeps the size."""
    height, width = (size, size) if isinstance(size, int) else size
    padding = (height // 2, width // 2) if pad else (0, 0)
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, (height, width), stride, padding, bias=False),
        nn.BatchNorm2d(outputs, eps=1e-3),
        nn.ReLU(inplace=True),
    )


def path(inputs: int, *layers: tuple[int, Size]) -> nn.Sequential:
    """Make convolutions one after the other, from pairs of outputs and size."""
    widths = [inputs, *(outputs for outputs, _ in layers)]
    return nn.Sequential(
        *(convolution(width, *layer) for width, layer in zip(widths, layers, strict=False))
    )


class Branches(nn.Module):
    """Paths side by side; what comes out of them lies one behind the other in the channels."""

    def __init__(self, *paths: nn.Module) -> None:
        super().__init__()
        self.paths = nn.ModuleList(paths)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Send the images through all paths."""
        return torch.cat([one(images) for one in self.paths], 1)


class Tower(nn.Module):
    """Stages, one after the other, and heads: one at the end, others after stages in between.

    While it learns it gives the logits of all heads, the one at the end first; then just those.
    """

    def __init__(
        self, stages: Sequence[nn.Module], head: nn.Module, between: dict[int, nn.Module]
    ) -> None:
        """Put it together; ``between``: number of a stage -> the head after it."""
        super().__init__()
        self.stages, self.head = nn.ModuleList(stages), head
        self.between = nn.ModuleDict({str(number): one for number, one in between.items()})

    def forward(self, images: torch.Tensor) -> torch.Tensor | list[torch.Tensor]:
        """Give the logits of images."""
        others = []
        for number, stage in enumerate(self.stages):
            images = stage(images)
            if self.training and str(number) in self.between:
                others.append(self.between[str(number)](images))
        logits = self.head(images)
        return [logits, *others] if others else logits


def end(inputs: int, classes: int, dropout: float) -> nn.Module:
    """Make the head at the end: the mean over the image, and a logit per class."""
    return nn.Sequential(
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(inputs, classes)
    )
