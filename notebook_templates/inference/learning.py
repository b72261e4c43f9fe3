"""The training before the measurement: a network that has learned something can lose some of it."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from networks import resnet


def as_batch(images: np.ndarray) -> np.ndarray:
    """Give images of shape (n, 1, 28, 28), as the network takes them."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def learned(
    model: str,
    images: np.ndarray,
    labels: np.ndarray,
    *,
    epochs: int,
    batch: int,
    rate: float,
    reached: Callable[[int, float, float], object],
) -> torch.nn.Module:
    """Train a ResNet on digits of shape (n, 1, 28, 28), with Adam at a rate that falls to 0.

    ``reached`` is called after each epoch: with its last step, the loss there, and the share of the
    epoch's images that were read right.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = resnet.build(model, classes=10, channels=1).to(device)
    steps = len(labels) // batch
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * steps)
    loss_of = torch.nn.CrossEntropyLoss()
    pixels, right = torch.from_numpy(images).to(device), torch.from_numpy(labels).long().to(device)
    for epoch in range(1, epochs + 1):
        network.train()
        seen_right = torch.zeros((), device=device)
        for chosen in _batches(len(labels), batch, steps, device):
            logits = network(pixels[chosen])
            loss = loss_of(logits, right[chosen])
            seen_right += (logits.argmax(1) == right[chosen]).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        reached(epoch * steps, float(loss.detach()), float(seen_right) / (steps * batch))
    return network


def _batches(many: int, batch: int, steps: int, device: str) -> Iterator[torch.Tensor]:
    order = torch.randperm(many, device=device)
    return iter(order[: steps * batch].split(batch))
