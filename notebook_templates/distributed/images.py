"""Where PyTorch's images come from: made up, MNIST's digits, folders, or shards of them.

Which images a rank sees in a step follows from the seed, the epoch and the step alone, with shards
also from the number of processes that read. So a training that is resumed goes on with exactly the
images that came next.
"""

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from sampler import SYNTHETIC, Sampler, mount_of
from torch.utils.data import DataLoader, Dataset

# digits.py is among the templates for data, beside this folder.
sys.path += [str(Path(__file__).resolve().parent.parent / "data")]
import broken
import crops
import digits
import folders
from cuts import DEVIATION, MEAN
from digits import DataError
from readers import Shards, WholeShards
from shards import PLAN, PrepareError

READ_AT_ONCE = 8  # files, by a process


@dataclass(frozen=True)
class Images:
    """A data set in two parts."""

    train: Any
    test: Dataset[Any] | None
    classes: int
    channels: int
    digest: str = ""
    """A SHA-256 by which other images are told; none of made-up ones."""


def open_images(
    data: str,
    size: int,
    made_up: int,
    mounts: Sequence[str],
    rank: int,
    ranks: int,
    seed: int,
    broken_in: Path | None = None,
) -> Images:
    """Open ``synthetic`` or a folder: MNIST's files, folders of pictures, or prepare.py's shards.

    Pictures are in ``train/CLASS`` and ``val/CLASS``, shards in the folder or in its ``train`` and
    ``val``. Given a folder for the list of them, pictures that are broken are left out.

    ``size`` is the height and width in pixels, ``made_up`` the number of synthetic images. Where
    there are several ``mounts`` of the same storage, a rank reads from the one that its number
    falls to, so that the load spreads over the storage's nodes; ``data`` is then below each mount.
    """
    if data == SYNTHETIC:
        return Images(Synthetic(made_up, size), None, classes=1000, channels=3)
    folder = Path(mount_of(rank, mounts), data).expanduser()
    if (folder / "train-images-idx3-ubyte.gz").exists():
        parts = (DigitImages(folder, part) for part in ("train", "t10k"))
        return Images(*parts, classes=10, channels=1, digest=digits.digest(folder))
    for place in (folder, folder / "train"):
        if (place / PLAN).exists():
            found = shards_in(place, folder / "val", size, rank, ranks, seed)
            return replace(found, digest=folders.digest_of_shards(place, folder / "val"))
    if (folder / "train").is_dir():
        return picture_folders(folder, size, rank == 0, seed, broken_in)
    raise DataError(
        f"{folder} has neither MNIST's files, nor shards of prepare.py, nor a folder train with "
        "one folder for each class. Set data to a folder that has one of these, or to 'synthetic'."
    )


class Synthetic(Dataset[Any]):
    """Noise, the same in every step: it costs no time, and measures all but the reading."""

    def __init__(self, count: int, size: int) -> None:
        self.count = count
        # Bytes, as of real images: a GPU is sent a quarter of what numbers would be.
        drawn = torch.Generator().manual_seed(0)
        self.image = torch.randint(0, 256, (size, size, 3), dtype=torch.uint8, generator=drawn)

    def __len__(self) -> int:
        return self.count

    def batches(self, steps: Sequence[Sequence[tuple[int, int]]], pinned: bool) -> Iterator[Any]:
        """Give a batch for each step, of one size, where the first was made."""
        pixels = self.image.expand(len(steps[0]), -1, -1, -1).contiguous()
        pixels = pixels.pin_memory() if pinned else pixels
        for step in steps:
            yield pixels, torch.tensor([index % 1000 for _, index in step])


class DigitImages(Dataset[Any]):
    """MNIST's digits, 28x28, one channel with values from 0 to 1."""

    def __init__(self, folder: Path, part: str) -> None:
        images = digits.read_images(folder / f"{part}-images-idx3-ubyte.gz")
        labels = digits.read_labels(folder / f"{part}-labels-idx1-ubyte.gz")
        if len(images) != len(labels):
            raise DataError(f"{folder}: {len(images)} images of {part}, {len(labels)} labels")
        self.images = torch.from_numpy(images.copy()).unsqueeze(1)
        self.labels = labels.tolist()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, at: tuple[int, int]) -> tuple[torch.Tensor, int]:
        return self.images[at[1]].float() / 255, self.labels[at[1]]


def picture_folders(
    folder: Path, size: int, is_first: bool, seed: int, broken_in: Path | None
) -> Images:
    """Open ``train/CLASS`` and, where it is there, ``val/CLASS``."""
    found = folders.opened(folder)
    train, test = found.train, found.test
    if broken_in:
        train = broken.whole(train, broken_in / broken.TRAIN, is_first)
        test = test and broken.whole(test, broken_in / broken.TEST, is_first)
    return Images(
        Pictures(train, size, True, seed),
        Pictures(test, size, False) if test else None,
        len(found.names),
        channels=3,
        digest=found.digest(),
    )


def shards_in(folder: Path, to_test: Path, size: int, rank: int, ranks: int, seed: int) -> Images:
    """Open a folder of shards, and one to test with where that is."""
    try:
        shards = Shards(str(folder), rank=rank, ranks=ranks, seed=seed, size=size)
        whole = WholeShards(to_test, rank, ranks, size) if (to_test / PLAN).exists() else None
    except PrepareError as error:
        raise DataError(str(error)) from error
    if whole and whole.classes != shards.classes:
        raise DataError(
            f"{to_test} has different classes from {folder}: their numbers would not match"
        )
    return Images(shards, whole, len(shards.classes), channels=3)


class Pictures(Dataset[Any]):
    """Files of pictures; cut at random to train, in the middle to test.

    Each is bytes of shape (size, size, 3).
    """

    def __init__(
        self, files: Sequence[folders.Labelled], size: int, at_random: bool, seed: int = 0
    ) -> None:
        self.files, self.size, self.at_random, self.seed = list(files), size, at_random, seed

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, at: tuple[int, int]) -> tuple[torch.Tensor, int]:
        (image,) = self.__getitems__([at])
        return image

    def __getitems__(self, batch: Sequence[tuple[int, int]]) -> list[tuple[torch.Tensor, int]]:
        """Return the images of a batch, as the loader asks for them.

        Some are read while others are decoded: storage takes its time to open a file.
        """
        with ThreadPoolExecutor(min(READ_AT_ONCE, len(batch))) as pool:
            files = [self.files[index] for _, index in batch]
            contents = pool.map(content, [path for path, _ in files])
            return [
                (self.cut(path, encoded, f"{self.seed} {epoch} {index}"), label)
                for (path, label), (epoch, index), encoded in zip(
                    files, batch, contents, strict=True
                )
            ]

    def cut(self, path: str, encoded: bytes, seed: str) -> torch.Tensor:
        """Decode the part of an image that is looked at."""
        try:
            if not self.at_random:
                return crops.in_the_middle(encoded, self.size)
            return crops.at_random(encoded, self.size, random.Random(seed))  # noqa: S311
        except DataError as error:
            raise DataError(f"{path} cannot be read: {error}") from error


def content(path: str) -> bytes:
    """Read a file; raise DataError where that is not possible."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def batches(
    images: Any, sampler: Sampler, epoch: int, steps: range, workers: int, pinned: bool
) -> Iterator[Any]:
    """Read the images of an epoch's steps."""
    if not isinstance(images, Shards):
        order = list(sampler.epoch(epoch, steps.start))[: len(steps)]
        if isinstance(images, Synthetic):
            return images.batches(order, pinned)
        return in_a_line(loader(images, workers, pinned, batch_sampler=order))
    images.go_to(epoch, steps.start, sampler.batch)
    whole = loader(images, workers, pinned, batch_size=sampler.batch, drop_last=True)
    return in_a_line(islice(whole, len(steps)))


def in_a_line(batches: Iterable[Any]) -> Iterator[Any]:
    """Give batches; of an error in a reading process tell the line that the user needs.

    The loader makes the whole traceback of that process the message.
    """
    try:
        yield from batches
    except DataError as error:
        last = str(error).strip().splitlines()[-1]
        raise DataError(last.removeprefix(f"{DataError.__module__}.DataError: ")) from error


def to_test(images: Any, rank: int, ranks: int, batch: int) -> Iterator[Any]:
    """Read a process's share of all images to test with, each once."""
    if isinstance(images, WholeShards):
        return iter(loader(images, 0, False, batch_size=batch))
    mine = [(0, index) for index in range(rank, len(images), ranks)]
    order = [mine[begin : begin + batch] for begin in range(0, len(mine), batch)]
    return iter(loader(images, 0, False, batch_sampler=order))


def loader(images: Dataset[Any], workers: int, pinned: bool, **how: Any) -> Any:
    """Read images in ``workers`` processes, ahead of their use."""
    ahead = 4 if workers else None
    return DataLoader(images, num_workers=workers, pin_memory=pinned, prefetch_factor=ahead, **how)


def on_device(
    pixels: torch.Tensor, device: torch.device, layout: torch.memory_format
) -> torch.Tensor:
    """Bring a batch to where it is computed with; bytes become numbers only there.

    Bytes are a quarter of what would be sent otherwise, and lie in the order that is wanted there
    as a rule: channels last in memory.
    """
    there = pixels.to(device, non_blocking=True)
    if there.dtype == torch.uint8:
        mean, deviation = normal(device)
        there = there.permute(0, 3, 1, 2).float().sub_(mean).div_(deviation)
    return there.contiguous(memory_format=layout)


@cache
def normal(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and deviation of bytes; once, since a device waits for what comes from Python."""
    of = torch.tensor((MEAN, DEVIATION), device=device).mul_(255).view(2, 3, 1, 1)
    return of[0], of[1]
