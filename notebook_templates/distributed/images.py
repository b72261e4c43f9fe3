"""Where PyTorch's images come from: made up, MNIST's digits, or folders of JPEG files."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from shares import (
    CENTRE_SHARE,
    CROP_RATIO,
    CROP_SHARE,
    DEVIATION,
    MEAN,
    SYNTHETIC,
    mount_of,
)
from torch.utils.data import DataLoader, Dataset

# digits.py is among the templates for data, beside this folder.
sys.path += [str(Path(__file__).resolve().parent.parent / "data")]
import digits
from digits import DataError


@dataclass(frozen=True)
class Images:
    """A data set in two parts."""

    train: Dataset[Any]
    test: Dataset[Any] | None
    classes: int
    channels: int


def open_images(data: str, size: int, made_up: int, mounts: Sequence[str], rank: int) -> Images:
    """Open ``synthetic``, a folder with MNIST's files, or one with ``train/CLASS/*.jpg``.

    ``size`` is the height and width in pixels, ``made_up`` the number of synthetic images. Where
    there are several ``mounts`` of the same storage, a rank reads from the one that its number
    falls to, so that the load spreads over the storage's nodes; ``data`` is then below each mount.
    """
    if data == SYNTHETIC:
        return Images(Synthetic(made_up, size), None, classes=1000, channels=3)
    folder = Path(mount_of(rank, mounts), data).expanduser()
    if (folder / "train-images-idx3-ubyte.gz").exists():
        return Images(Digits(folder, "train"), Digits(folder, "t10k"), classes=10, channels=1)
    if (folder / "train").is_dir():
        return jpeg_folders(folder, size)
    raise DataError(
        f"{folder} has neither MNIST's files nor a folder train with one folder for each class. "
        "Set data to a folder that has, or to 'synthetic'."
    )


class Synthetic(Dataset[Any]):
    """Noise, the same for every index: it costs no time, and measures all but the reading."""

    def __init__(self, count: int, size: int) -> None:
        self.count = count
        self.image = torch.randn(3, size, size, generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: tuple[int, int]) -> tuple[torch.Tensor, int]:
        return self.image, at[1] % 1000


class Digits(Dataset[Any]):
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


def jpeg_folders(folder: Path, size: int) -> Images:
    """Open ``train/CLASS/*.jpg`` and, where it is there, ``val/CLASS/*.jpg``."""
    names = sorted(path.name for path in (folder / "train").iterdir() if path.is_dir())
    if not names:
        raise DataError(f"{folder}/train has no folder, one for each class")
    test = Jpegs(folder / "val", names, size, False) if (folder / "val").is_dir() else None
    return Images(Jpegs(folder / "train", names, size, True), test, len(names), channels=3)


class Jpegs(Dataset[Any]):
    """JPEG files, a folder for each class; cut at random to train, in the middle to test."""

    def __init__(self, folder: Path, names: Sequence[str], size: int, at_random: bool) -> None:
        self.size, self.at_random = size, at_random
        self.files = [
            (str(path), number)
            for number, name in enumerate(names)
            for path in sorted((folder / name).iterdir())
            if path.suffix.lower() in (".jpg", ".jpeg")
        ]
        if not self.files:
            raise DataError(f"{folder} has no .jpg files in its folders {', '.join(names[:3])} ...")

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, at: tuple[int, int]) -> tuple[torch.Tensor, int]:
        epoch, index = at
        path, label = self.files[index]
        draw = np.random.default_rng((epoch, index))
        try:
            with Image.open(path) as image:
                box = random_box(image.size, draw) if self.at_random else centre_box(image.size)
                shrink_while_decoding(image, box, self.size)
                scale = image.width / image.info.get("full_width", image.width)
                cut = image.convert("RGB").resize(
                    (self.size, self.size),
                    Image.Resampling.BILINEAR,
                    box=tuple(side * scale for side in box),
                )
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error}") from error
        if self.at_random and draw.random() < 0.5:
            cut = cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(cut)).permute(2, 0, 1).float() / 255
        mean, deviation = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(DEVIATION).view(3, 1, 1)
        return (pixels - mean) / deviation, label


Box = tuple[float, float, float, float]


def shrink_while_decoding(image: Image.Image, box: Box, size: int) -> None:
    """Let the JPEG decoder leave out what the cut would throw away: a half, quarter or eighth."""
    image.info["full_width"] = image.width
    share = size / min(box[2] - box[0], box[3] - box[1])
    if share < 1:
        image.draft("RGB", (int(image.width * share), int(image.height * share)))


def random_box(extent: tuple[int, int], draw: np.random.Generator) -> Box:
    """Draw a part of an image, in pixels: left, upper, right, lower."""
    width, height = extent
    for _ in range(10):
        area = width * height * draw.uniform(*CROP_SHARE)
        ratio = np.exp(draw.uniform(*np.log(CROP_RATIO)))
        wide, high = np.sqrt(area * ratio), np.sqrt(area / ratio)
        if wide <= width and high <= height:
            left, upper = draw.uniform(0, width - wide), draw.uniform(0, height - high)
            return float(left), float(upper), float(left + wide), float(upper + high)
    return centre_box(extent)


def centre_box(extent: tuple[int, int]) -> Box:
    """Return the square in the middle of an image."""
    width, height = extent
    side = min(extent) * CENTRE_SHARE
    left, upper = (width - side) / 2, (height - side) / 2
    return left, upper, left + side, upper + side


def loader(images: Dataset[Any], steps: Sequence[Any], workers: int, pinned: bool) -> Any:
    """Read the steps' images in ``workers`` processes, ahead of their use."""
    return DataLoader(
        images,
        batch_sampler=steps,
        num_workers=workers,
        pin_memory=pinned,
        prefetch_factor=4 if workers else None,
    )
