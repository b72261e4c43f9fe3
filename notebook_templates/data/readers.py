"""Shards as a source for PyTorch's DataLoader: read, shuffled, decoded, cropped.

Shards are divided over processes and the workers of each. What a worker gives in an epoch follows
from the seed, the epoch and its number alone. Every worker gives the same number of images, so that
no process waits for another at the end of an epoch; one with fewer begins its shards again.
"""

import io
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from shards import FORMATS, PLAN, Plan, PrepareError, manifest
from torch.utils.data import IterableDataset, get_worker_info

AREA = (0.08, 1.0)  # share of the image that a crop takes (Szegedy et al. 2014, section 6)
RATIO = (3 / 4, 4 / 3)  # its width to its height
Sample = tuple[torch.Tensor, int]


class Shards(IterableDataset[Sample]):
    """Images of one rank, shape (3, size, size), values 0 to 255, with their labels.

    ``folder`` is below each of ``mounts``; a rank reads from mount rank modulo mounts, so that the
    load spreads over the storage's nodes. ``shuffle`` is how many images wait to be drawn from.
    """

    def __init__(
        self,
        folder: str,
        mounts: Sequence[str] = ("",),
        rank: int = 0,
        ranks: int = 1,
        seed: int = 1,
        size: int = 224,
        shuffle: int = 1000,
    ) -> None:
        self.folder = Path(mounts[rank % len(mounts)], folder).expanduser()
        self.rank, self.ranks, self.seed, self.size, self.shuffle = rank, ranks, seed, size, shuffle
        plan = json.loads((self.folder / PLAN).read_text())
        del plan["files_sha256"]
        self.plan = Plan(**plan, destination=str(self.folder))
        parts = manifest(self.folder)
        self.images = sum(part.images for part in parts) * self.plan.copies
        copies = range(self.plan.copies)
        self.files = [
            self.plan.file_names(part.number, copy)[0] for copy in copies for part in parts
        ]
        self.epoch = 0

    def __iter__(self) -> Iterator[Sample]:
        """Give this worker's images of the epoch that ``self.epoch`` says."""
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        readers = self.ranks * workers
        if readers > len(self.files):
            raise PrepareError(f"{readers} readers for {len(self.files)} shards: prepare more")
        files = list(self.files)
        random.Random(f"{self.seed} {self.epoch}").shuffle(files)  # noqa: S311
        place = self.rank * workers + number
        chance = random.Random(f"{self.seed} {self.epoch} {place}")  # noqa: S311
        drawn = self.drawn(files[place::readers], chance)
        for _ in range(self.images // readers):
            label, encoded = next(drawn)
            yield cropped(encoded, self.size, chance), label

    def drawn(self, files: list[str], chance: random.Random) -> Iterator[tuple[int, bytes]]:
        """Yield pictures without end, each drawn from some that were read."""
        waiting: list[tuple[int, bytes]] = []
        while True:
            for file in files:
                for picture in FORMATS[self.plan.format].read(self.folder / file):
                    waiting.append(picture)
                    if len(waiting) > self.shuffle:
                        yield taken(waiting, chance)
            while waiting:
                yield taken(waiting, chance)


def taken(waiting: list[tuple[int, bytes]], chance: random.Random) -> tuple[int, bytes]:
    """Take one of those that wait; the last gets its place."""
    at = chance.randrange(len(waiting))
    waiting[at], waiting[-1] = waiting[-1], waiting[at]
    return waiting.pop()


def cropped(encoded: bytes, size: int, chance: random.Random) -> torch.Tensor:
    """Decode a random part of an image, shape (3, size, size).

    Where the part is larger than ``size``, JPEG is decoded at 1/2, 1/4 or 1/8: fewer pixels.
    """
    with Image.open(io.BytesIO(encoded), formats=["JPEG"]) as image:
        width, height = image.size
        area = width * height * chance.uniform(*AREA)
        ratio = chance.uniform(*RATIO)
        wide = min(width, max(1, round((area * ratio) ** 0.5)))
        high = min(height, max(1, round((area / ratio) ** 0.5)))
        left, top = chance.randint(0, width - wide), chance.randint(0, height - high)
        scale = max(1.0, min(wide, high) / size)
        image.draft("RGB", (int(width / scale), int(height / scale)))
        x, y = image.width / width, image.height / height
        box = (left * x, top * y, (left + wide) * x, (top + high) * y)
        part = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR, box)
    if chance.random() < 0.5:
        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return torch.from_numpy(np.array(part)).permute(2, 0, 1)
