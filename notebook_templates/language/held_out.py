"""What a training is measured by: its loss on what is held out, and the memory that it takes."""

import math
from contextlib import AbstractContextManager

import torch
from process_group import ProcessGroup
from token_dataset import TokenDataset
from torch import nn


def loss(
    model: nn.Module,
    test: TokenDataset,
    batch: int,
    group: ProcessGroup,
    precision: AbstractContextManager[object],
) -> float:
    """Return the mean loss of the tokens that count, in nats; the processes divide the rows."""
    here = group.here
    model.eval()
    total, targets = 0.0, 0
    with torch.no_grad(), precision:
        for begin in range(0, len(test), batch * here.ranks):
            rows = range(len(test))[begin + here.rank * batch :][:batch]
            # Where a model is divided, all processes compute, or none does.
            some = test.batch(rows or [0]).on(group.device)
            mean = float(model(input_ids=some.tokens, labels=some.labels).loss)
            if rows:
                total, targets = total + mean * some.targets, targets + some.targets
    model.train()
    total, count = group.sums(total, targets)
    return total / count


def perplexity(loss: float) -> float:
    """Return e to the loss: among so many equally likely tokens the model has to choose."""
    # A larger one is no floating-point number.
    return math.exp(loss) if loss < 700 else math.inf


def peak_gpu_memory_bytes(group: ProcessGroup) -> int | None:
    """Return what PyTorch held at most on any process's GPU since it was reset; ``None`` on CPUs.

    Asking waits for nothing; the processes ask each other, so all of them have to call this.
    """
    if not group.is_on_gpus:
        return None
    mine = [0.0] * group.here.ranks
    mine[group.here.rank] = torch.cuda.max_memory_allocated()
    return int(max(group.sums(*mine)))
