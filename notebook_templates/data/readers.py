"""Shards as a source for PyTorch's DataLoader: read, shuffled, decoded, cropped.

Shards are divided over processes and the workers of each. What a worker gives in an epoch follows
from the seed, the epoch and its number alone. Every worker gives the same number of images, so that
no process waits for another at the end of an epoch; one with fewer begins its shards again.
"""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import crops
import torch
from digits import DataError
from shards import FORMATS, PLAN, Plan, PrepareError, manifest
from torch.utils.data import IterableDataset, get_worker_info

Sample = tuple[torch.Tensor, int]
Record = tuple[str, int, bytes]  # the shard's name, label and JPEG data


class Shards(IterableDataset[Sample]):
    """Images of one rank, shape (size, size, 3), values 0 to 255, with their labels.

    Permuted (0, 3, 1, 2), without a copy, a batch is as PyTorch's networks read it fastest: the
    channels come first in its shape and last in memory.

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
            name, label, encoded = next(drawn)
            try:
                yield crops.at_random(encoded, self.size, chance), label
            except DataError as error:
                raise DataError(f"a picture in {self.folder / name} {error}") from error

    def drawn(self, files: list[str], chance: random.Random) -> Iterator[Record]:
        """Yield pictures without end, each drawn from some that were read."""
        waiting: list[Record] = []
        while True:
            for file in files:
                for label, encoded in FORMATS[self.plan.format].read(self.folder / file):
                    waiting.append((file, label, encoded))
                    if len(waiting) > self.shuffle:
                        yield taken(waiting, chance)
            while waiting:
                yield taken(waiting, chance)


def taken(waiting: list[Record], chance: random.Random) -> Record:
    """Take one of those that wait; the last gets its place."""
    at = chance.randrange(len(waiting))
    waiting[at], waiting[-1] = waiting[-1], waiting[at]
    return waiting.pop()
