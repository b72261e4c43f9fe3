"""Shards as a source for PyTorch's DataLoader: read, shuffled, decoded, cropped.

Shards are divided over processes and the workers of each. What a worker gives in an epoch follows
from the seed, the epoch and its number alone. Every worker gives the same number of images, so that
no process waits for another at the end of an epoch; one with fewer begins its shards again.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import crops
import torch
from digits import DataError
from shards import FORMATS, READ_ERRORS, ShardPlan, manifest, plan_of
from torch.utils.data import IterableDataset, get_worker_info

Sample = tuple[torch.Tensor, int]
Record = tuple[str, int, bytes]  # the shard's name, label and JPEG data


class Shards(IterableDataset[Sample]):
    """Images of one rank, shape (size, size, 3), values 0 to 255, with their labels, from 0 on.

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
        self.plan, self.classes = plan_of(self.folder)
        parts = manifest(self.folder)
        self.images = sum(part.images for part in parts) * self.plan.copies
        copies = range(self.plan.copies)
        self.files = [
            self.plan.file_names(part.number, copy)[0] for copy in copies for part in parts
        ]
        self.go_to(0)

    def __len__(self) -> int:
        """Return the images of all ranks; the loader asks for it, and warns of more than it."""
        return self.images

    def go_to(self, epoch: int, step: int = 0, batch: int = 1) -> None:
        """Begin the next iteration at this step of an epoch, as if the steps before had been read.

        With the same number of ranks and workers, a training that is resumed sees just the images
        that came next; those before are read, but not decoded.
        """
        self.epoch, self.step, self.batch = epoch, step, batch

    def __iter__(self) -> Iterator[Sample]:
        """Give this worker's images of the epoch and from the step that ``go_to`` was told."""
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        # The loader asks worker 0 first, though at this step it was another's turn.
        number = (number + self.step) % workers
        done = len(range(number, self.step, workers)) * self.batch
        readers = self.ranks * workers
        if readers > len(self.files):
            raise DataError(f"{readers} readers for only {len(self.files)} shards: prepare more")
        files = list(self.files)
        random.Random(f"{self.seed} {self.epoch}").shuffle(files)  # noqa: S311
        place = f"{self.seed} {self.epoch} {self.rank * workers + number}"
        drawn = self.drawn(files[self.rank * workers + number :: readers], place)
        for at, (name, label, encoded) in enumerate(islice(drawn, self.images // readers)):
            if at < done:
                continue
            chance = random.Random(f"{place} {at}")  # noqa: S311
            try:
                part = crops.at_random(encoded, self.size, chance)
            except DataError as error:
                raise DataError(f"a picture in {self.folder / name} {error}") from error
            yield part, label - self.plan.first_label

    def drawn(self, files: list[str], place: str) -> Iterator[Record]:
        """Yield pictures without end, each drawn from some that were read.

        Raises `DataError` where the files have none.
        """
        chance = random.Random(place)  # noqa: S311
        waiting: list[Record] = []
        while True:
            is_empty = True
            for file in files:
                for label, encoded in records(self.plan, self.folder / file):
                    is_empty = False
                    waiting.append((file, label, encoded))
                    if len(waiting) > self.shuffle:
                        yield taken(waiting, chance)
            if is_empty:
                raise DataError(
                    f"no picture is in {', '.join(files)} of {self.folder}, which one reader has: "
                    "prepare fewer shards"
                )
            while waiting:
                yield taken(waiting, chance)


class WholeShards(IterableDataset[Sample]):
    """Each image of a folder of shards once, cut in the middle: to test with.

    The ranks divide the shards, so one may have more images than another, or none.
    """

    def __init__(self, folder: Path, rank: int, ranks: int, size: int) -> None:
        self.folder, self.size = folder, size
        self.plan, self.classes = plan_of(folder)
        parts = manifest(folder)
        self.images = sum(part.images for part in parts)
        self.files = [self.plan.file_names(part.number, 0)[0] for part in parts][rank::ranks]

    def __len__(self) -> int:
        """Return the images of all ranks."""
        return self.images

    def __iter__(self) -> Iterator[Sample]:
        """Give this rank's images."""
        for file in self.files:
            for label, encoded in records(self.plan, self.folder / file):
                try:
                    part = crops.in_the_middle(encoded, self.size)
                except DataError as error:
                    raise DataError(f"a picture in {self.folder / file} {error}") from error
                yield part, label - self.plan.first_label


def records(plan: ShardPlan, shard: Path) -> Iterator[tuple[int, bytes]]:
    """Give label and JPEG data of each picture of a shard; raise DataError where it is damaged."""
    try:
        yield from FORMATS[plan.format].read(shard)
    except READ_ERRORS as error:
        raise DataError(f"{shard} cannot be read: {error}") from error


def taken(waiting: list[Record], chance: random.Random) -> Record:
    """Take one of those that wait; the last gets its place."""
    at = chance.randrange(len(waiting))
    waiting[at], waiting[-1] = waiting[-1], waiting[at]
    return waiting.pop()
