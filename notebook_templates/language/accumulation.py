"""A step's gradients: the mean over all tokens that are learnt in it, by all processes.

A batch that does not fit into memory is computed in parts, whose gradients are added up. A part
with many tokens counts for more than one with few, so the step is that of one large batch.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import torch
from process_group import ProcessGroup
from token_dataset import TokenDataset
from torch import nn


class Way(Protocol):
    """What a step asks of LoRA, and of FSDP2."""

    trained: nn.Module

    def part_of_a_step(self, is_last: bool) -> AbstractContextManager[None]:
        """Compute a part of a step in it."""


@dataclass(frozen=True)
class Step:
    """What a process did in a step."""

    loss: torch.Tensor
    """Its mean over all processes is that of all tokens of the step."""
    read: int
    """Tokens of this process, without padding."""


def mean_over_tokens(
    way: Way,
    train: TokenDataset,
    indices: Sequence[int],
    batch: int,
    group: ProcessGroup,
    precision: AbstractContextManager[object],
) -> Step:
    """Compute the gradients of a step, in parts of ``batch`` rows; the weights stay as they are.

    ``indices``: the rows of all processes, of which each takes as many. All know all rows, so none
    is asked how many tokens it has, and a GPU waits for nothing.
    """
    here, device = group.here, group.device
    mine = len(indices) // here.ranks
    targets = train.targets(indices)
    begins = range(here.rank * mine, (here.rank + 1) * mine, batch)
    total, read = torch.zeros((), device=device), 0
    for begin in begins:
        part = train.batch(indices[begin : begin + batch]).on(device)
        with way.part_of_a_step(is_last=begin == begins[-1]):
            with precision:
                loss = way.trained(input_ids=part.tokens, labels=part.labels).loss
            # Processes take the mean of their gradients: hence times their number.
            loss = loss * (part.targets * here.ranks / targets)
            loss.backward()
        total, read = total + loss.detach(), read + part.read
    return Step(total, read)
