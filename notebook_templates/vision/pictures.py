"""One's own pictures, in a folder for each class: to train on, and to test with."""

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

sys.path += [
    str(Path(__file__).resolve().parent.parent / place) for place in ("distributed", "data")
]
import augment
import crops
import folders
import images
from digits import DataError


def opened(data: str, held_out: float, seed: int) -> folders.PictureFolders:
    """Find ``train/CLASS`` and ``val/CLASS``, or ``CLASS`` alone, of which a share is held out."""
    folder = Path(data).expanduser()
    if not folder.is_dir():
        raise DataError(f"data is {data!r}; there is no such folder")
    if (folder / "train").is_dir():
        found = folders.opened(folder)
        if found.test is not None:
            return found
        names, files = found.names, found.train
    else:
        names = folders.class_names(folder)
        if len(names) < 2:
            raise DataError(f"{folder} has no folders train and val, and none for each class")
        files = folders.labelled(folder, names)
    mixed = random.Random(seed).sample(files, len(files))  # noqa: S311
    held = max(1, round(len(files) * held_out))
    return folders.PictureFolders(names, sorted(mixed[held:]), sorted(mixed[:held]))


class Augmented(images.Pictures):
    """Files of pictures to train on, cut at random and changed by RandAugment."""

    def __init__(
        self,
        files: Sequence[folders.Labelled],
        size: int,
        least: float,
        operations: int,
        magnitude: float,
        seed: int = 0,
    ) -> None:
        super().__init__(files, size, at_random=True, seed=seed)
        self.least, self.operations, self.magnitude = least, operations, magnitude

    def cut(self, path: str, encoded: bytes, seed: str) -> torch.Tensor:
        """Decode a part of an image, and change it."""
        chance = random.Random(seed)  # noqa: S311
        try:
            pixels = crops.at_random(encoded, self.size, chance, self.least)
        except DataError as error:
            raise DataError(f"{path} cannot be read: {error}") from error
        return augment.rand_augment(pixels.contiguous(), chance, self.operations, self.magnitude)


def as_bytes(files: Sequence[folders.Labelled], size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Read the middle of all pictures at once: bytes of shape (n, size, size, 3), and labels."""
    whole: Any = images.Pictures(files, size, at_random=False)
    read = whole.__getitems__([(0, index) for index in range(len(files))])
    return torch.stack([pixels for pixels, _ in read]), torch.tensor([label for _, label in read])
