"""What is trained on: rows of tokens with their labels, and batches of them.

A row is a block of text, or one record of instructions. Records of different lengths are padded at
their right, never packed: a token of a causal model sees only what is before it in its row, so
nothing is seen of other records, nor of the padding. That holds without an attention mask, which
would keep a GPU waiting and from its fastest attention.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from chat import IGNORED, LabelledRow
from torch.nn.utils.rnn import pad_sequence

WIDTH_MULTIPLE = 8
"""Of the columns of a padded batch: GPUs multiply matrices of such sizes fastest."""


@dataclass(frozen=True)
class Batch:
    """Tokens and labels, of shape (rows, width)."""

    tokens: torch.Tensor
    labels: torch.Tensor
    read: int
    """Tokens that are no padding."""
    targets: int
    """Labels that count."""

    def on(self, device: torch.device) -> "Batch":
        """Return it on a device; a GPU goes on meanwhile."""
        is_gpu = device.type == "cuda"
        tokens, labels = (
            (one.pin_memory() if is_gpu else one).to(device, non_blocking=True)
            for one in (self.tokens, self.labels)
        )
        return Batch(tokens, labels, self.read, self.targets)


class TokenDataset:
    """Rows of at most ``length`` tokens."""

    def __init__(
        self,
        rows: Sequence[torch.Tensor],
        labels: Sequence[torch.Tensor],
        length: int,
        padding: int = 0,
    ) -> None:
        """Take rows and their labels; ``padding`` is the token that fills the shorter ones."""
        self._rows, self._labels = rows, labels
        self._length, self._padding = length, padding
        # Nothing predicts a row's first.
        self._targets = [int((one[1:] != IGNORED).sum()) for one in labels]

    @classmethod
    def of_blocks(cls, blocks: torch.Tensor) -> "TokenDataset":
        """Take blocks of text, shape (blocks, length), every token of which is learnt."""
        rows = blocks.unbind()
        return cls(rows, rows, blocks.shape[1])

    @classmethod
    def of_rows(cls, rows: Sequence[LabelledRow], length: int, padding: int) -> "TokenDataset":
        """Take conversations."""
        tokens = [torch.tensor(row.tokens) for row in rows]
        return cls(tokens, [torch.tensor(row.labels) for row in rows], length, padding)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def digest(self) -> str:
        """Return a SHA-256 by which other rows are told."""
        told = hashlib.sha256()
        for row in self._rows:
            told.update(row.numpy().tobytes() + b"|")
        return told.hexdigest()

    def targets(self, indices: Sequence[int]) -> int:
        """Return how many labels of some rows count."""
        return sum(self._targets[index] for index in indices)

    def batch(self, indices: Sequence[int]) -> Batch:
        """Put rows together; the shorter ones are padded."""
        rows, labels = ([part[index] for index in indices] for part in (self._rows, self._labels))
        longest = max(len(row) for row in rows)
        width = min(self._length, -(-longest // WIDTH_MULTIPLE) * WIDTH_MULTIPLE)
        return Batch(
            _padded(rows, width, self._padding),
            _padded(labels, width, IGNORED),
            sum(len(row) for row in rows),
            self.targets(indices),
        )


def _padded(rows: list[torch.Tensor], width: int, value: int) -> torch.Tensor:
    padded = pad_sequence(rows, batch_first=True, padding_value=value)
    return torch.nn.functional.pad(padded, (0, width - padded.shape[1]), value=value)
