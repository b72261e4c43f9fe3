"""Pictures that are drawn in a second, in the place of one's own: eight kinds of shapes.

A folder as one's own is: ``train/CLASS/*.png`` and ``val/CLASS/*.png``. Colours, places and sizes
are random, so that the shape alone tells the class; a mirrored or cut picture keeps it.
"""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageDraw

PIXELS = 48  # height and width
TO_TRAIN, TO_TEST = 80, 25  # pictures of a class
Box = tuple[int, int, int, int]
Colour = tuple[int, int, int]


def make(folder: Path, seed: int) -> None:
    """Draw them into a folder, which is there whole or not at all."""
    chance = random.Random(seed)  # noqa: S311
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as building:
        made = Path(building) / folder.name
        for part, count in (("train", TO_TRAIN), ("val", TO_TEST)):
            for name, draw in KINDS.items():
                (made / part / name).mkdir(parents=True)
                for number in range(count):
                    drawn(draw, chance).save(made / part / name / f"{number:03}.png")
        made.rename(folder)


def drawn(draw: Callable[[ImageDraw.ImageDraw, Box, Colour], None], chance: random.Random) -> Image:
    """Draw one shape, light on dark or dark on light."""
    dark, light = (
        tuple(chance.randint(*values) for _ in range(3)) for values in ((0, 90), (150, 255))
    )
    behind, colour = (dark, light) if chance.random() < 0.5 else (light, dark)
    picture = Image.new("RGB", (PIXELS, PIXELS), behind)
    side = chance.randint(26, 40)
    left, upper = (chance.randint(2, PIXELS - side - 2) for _ in range(2))
    draw(ImageDraw.Draw(picture), (left, upper, left + side, upper + side), colour)
    return picture


def _disc(on: ImageDraw.ImageDraw, box: Box, colour: Colour) -> None:
    on.ellipse(box, fill=colour)


def _ring(on: ImageDraw.ImageDraw, box: Box, colour: Colour) -> None:
    on.ellipse(box, outline=colour, width=5)


def _square(on: ImageDraw.ImageDraw, box: Box, colour: Colour) -> None:
    on.rectangle(box, fill=colour)


def _frame(on: ImageDraw.ImageDraw, box: Box, colour: Colour) -> None:
    on.rectangle(box, outline=colour, width=5)


def _triangle(on: ImageDraw.ImageDraw, box: Box, colour: Colour) -> None:
    left, upper, right, lower = box
    on.polygon([(left, lower), (right, lower), ((left + right) // 2, upper)], fill=colour)


def _cross(on: ImageDraw.ImageDraw, box: Box, colour: Colour) -> None:
    left, upper, right, lower = box
    on.line((left, upper, right, lower), fill=colour, width=6)
    on.line((left, lower, right, upper), fill=colour, width=6)


def _stripes(on: ImageDraw.ImageDraw, box: Box, colour: Colour) -> None:
    left, upper, right, lower = box
    for row in range(upper, lower, 8):
        on.rectangle((left, row, right, row + 3), fill=colour)


def _dots(on: ImageDraw.ImageDraw, box: Box, colour: Colour) -> None:
    left, upper, right, lower = box
    for row in range(upper, lower - 4, 9):
        for column in range(left, right - 4, 9):
            on.ellipse((column, row, column + 5, row + 5), fill=colour)


KINDS = {
    "cross": _cross,
    "disc": _disc,
    "dots": _dots,
    "frame": _frame,
    "ring": _ring,
    "square": _square,
    "stripes": _stripes,
    "triangle": _triangle,
}
