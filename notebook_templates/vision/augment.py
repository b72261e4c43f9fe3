"""Pictures and labels changed at random while a network learns: RandAugment and mixup.

What is drawn follows from a seed that the caller gives, so that a training that is resumed sees
what came next.
"""

import random
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps

STRONGEST = 10  # magnitudes go from 0 to this
GREY = (128, 128, 128)  # what comes into a picture from outside
Change = Callable[[Image.Image, float, random.Random], Image.Image]


def rand_augment(
    pixels: torch.Tensor, chance: random.Random, operations: int, magnitude: float
) -> torch.Tensor:
    """Change bytes of shape (height, width, 3) by so many operations, drawn from `CHANGES`.

    Cubuk et al. 2019, RandAugment (arXiv:1909.13719): all operations share one magnitude.
    """
    picture = Image.fromarray(pixels.numpy())
    for _ in range(operations):
        picture = chance.choice(CHANGES)(picture, magnitude / STRONGEST, chance)
    return torch.from_numpy(np.array(picture))


def mixup(
    pixels: torch.Tensor, labels: torch.Tensor, classes: int, alpha: float, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mix each picture and label with another of the batch; returns shares of labels.

    Zhang et al. 2017 (arXiv:1710.09412). The share is drawn from Beta(alpha, alpha), once for a
    batch; alpha 0 mixes nothing. The first is mixed with the last, and so on: the batch itself was
    drawn, and a GPU need not wait for an order from here.
    """
    one_hot = torch.nn.functional.one_hot(labels, classes).float()
    if alpha == 0:
        return pixels, one_hot
    share = float(np.random.default_rng(seed).beta(alpha, alpha))
    return tuple(one.lerp(one.flip(0), 1 - share) for one in (pixels, one_hot))


def _signed(value: float, chance: random.Random) -> float:
    return value if chance.random() < 0.5 else -value


def _moved(picture: Image.Image, *numbers: float) -> Image.Image:
    bilinear = Image.Resampling.BILINEAR
    return picture.transform(
        picture.size, Image.Transform.AFFINE, numbers, bilinear, fillcolor=GREY
    )


def _sheared_x(picture: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    return _moved(picture, 1, _signed(0.3 * strength, chance), 0, 0, 1, 0)


def _sheared_y(picture: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    return _moved(picture, 1, 0, 0, _signed(0.3 * strength, chance), 1, 0)


def _shifted_x(picture: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    return _moved(picture, 1, 0, _signed(0.45 * strength, chance) * picture.width, 0, 1, 0)


def _shifted_y(picture: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    return _moved(picture, 1, 0, 0, 0, 1, _signed(0.45 * strength, chance) * picture.height)


def _turned(picture: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    angle = _signed(30 * strength, chance)
    return picture.rotate(angle, Image.Resampling.BILINEAR, fillcolor=GREY)


def _enhanced(of: Callable[[Image.Image], ImageEnhance._Enhance]) -> Change:
    def change(picture: Image.Image, strength: float, chance: random.Random) -> Image.Image:
        return of(picture).enhance(1 + _signed(0.9 * strength, chance))

    return change


def _posterised(picture: Image.Image, strength: float, _: random.Random) -> Image.Image:
    return ImageOps.posterize(picture, 8 - round(4 * strength))


def _solarised(picture: Image.Image, strength: float, _: random.Random) -> Image.Image:
    return ImageOps.solarize(picture, round(256 * (1 - strength)))


CHANGES: tuple[Change, ...] = (
    lambda picture, _, __: picture,
    lambda picture, _, __: ImageOps.autocontrast(picture),
    lambda picture, _, __: ImageOps.equalize(picture),
    _turned,
    _sheared_x,
    _sheared_y,
    _shifted_x,
    _shifted_y,
    _posterised,
    _solarised,
    _enhanced(ImageEnhance.Brightness),
    _enhanced(ImageEnhance.Color),
    _enhanced(ImageEnhance.Contrast),
    _enhanced(ImageEnhance.Sharpness),
)
