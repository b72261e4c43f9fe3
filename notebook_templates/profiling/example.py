"""A training to look into: small pictures are unpacked and turned, and a small network learns them.

Copy this file, and put a training of your own into `training`: it returns what the batches come
from, such as a `DataLoader`, and a function that takes one step with a batch.
"""

import io
from collections.abc import Callable, Iterable

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

Batch = tuple[torch.Tensor, torch.Tensor]


class JpegPictures(Dataset):
    """JPEG files in memory, as a data set on a disk has them."""

    def __init__(self, count: int = 512, side: int = 192) -> None:
        """Make them."""
        random = np.random.default_rng(1)
        self._files = [_jpeg(random, side) for _ in range(count)]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Unpack one, and turn it; its class is its number's last digit."""
        picture = Image.open(io.BytesIO(self._files[index])).convert("RGB")
        picture = picture.rotate(index % 30 - 15, Image.Resampling.BILINEAR).resize((64, 64))
        pixels = torch.from_numpy(np.asarray(picture, dtype=np.float32).copy())
        return pixels.permute(2, 0, 1) / 255, index % 10


def _jpeg(random: np.random.Generator, side: int) -> bytes:
    file = io.BytesIO()
    pixels = random.integers(0, 256, (side // 8, side // 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((side, side)).save(file, "JPEG")
    return file.getvalue()


def training(
    batch: int = 32, workers: int = 0, width: int = 32
) -> tuple[Iterable[Batch], Callable[[Batch], object]]:
    """Return the batches, and what takes a step with one.

    ``workers`` are the processes that unpack pictures beside the training; ``width`` is the number
    of channels of the network's first layer.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pinned = device.type == "cuda"
    batches = DataLoader(
        JpegPictures(), batch, shuffle=True, drop_last=True, num_workers=workers, pin_memory=pinned
    )
    network = nn.Sequential(
        nn.Conv2d(3, width, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, 10),
    ).to(device)
    optimizer = torch.optim.AdamW(network.parameters())
    loss_of = nn.CrossEntropyLoss()

    def step(taken: Batch) -> None:
        images, labels = (part.to(device, non_blocking=True) for part in taken)
        optimizer.zero_grad()
        loss_of(network(images), labels).backward()
        optimizer.step()

    return batches, step
