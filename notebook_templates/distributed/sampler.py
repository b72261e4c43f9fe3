"""Which images are whose: divided over ranks and steps, the same for every framework.

Which images a rank sees in a step follows from the seed, the epoch and the step alone. So a
training that is resumed, on the same number of ranks, goes on with exactly the images that came
next.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

SYNTHETIC = "synthetic"


def mount_of(rank: int, mounts: Sequence[str]) -> str:
    """Return the mount point of a rank: its number modulo the number of mounts."""
    return mounts[rank % len(mounts)] if mounts else ""


@dataclass(frozen=True)
class Sampler:
    """Which images of each step are a rank's."""

    images: int
    batch: int
    rank: int
    ranks: int
    seed: int

    @property
    def steps(self) -> int:
        """The steps of an epoch; images that fill no whole step wait for the next epoch."""
        return self.images // (self.batch * self.ranks)

    def epoch(self, epoch: int, first_step: int = 0) -> Iterator[list[tuple[int, int]]]:
        """Give each step's images, from a step on, as pairs of epoch and index."""
        order = np.random.default_rng((self.seed, epoch)).permutation(self.images).tolist()
        for step in range(first_step, self.steps):
            begin = (step * self.ranks + self.rank) * self.batch
            yield [(epoch, index) for index in order[begin : begin + self.batch]]
