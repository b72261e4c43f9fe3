"""How the papers measure a training: its length, its batch, its readers, and when to believe it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from architectures.models import PRECISIONS
from measurement.papers import MOST_VARIATION

NO_TF32 = "tf32 is for NVIDIA GPUs: use fp32 or bf16 on a CPU"


class ProtocolError(ValueError):
    """There is nothing to measure with these settings; the message says what to change."""


def iterations(epochs: int, images: int, batch: int, processes: int) -> int:
    """Return epochs x images / (batch x processes).

    >>> iterations(epochs=2, images=1_281_167, batch=128, processes=8)
    2502

    Raises `ProtocolError` where that is none.
    """
    count = epochs * images // (batch * processes)
    if count == 0:
        raise ProtocolError(
            f"{images} images do not fill one step of {batch} images on {processes} processes: "
            "set a smaller batch, or more images or epochs"
        )
    return count


def decode_threads(cores: int, gpus: int) -> int:
    """Return how many cores of a node decode images: four for each GPU have other work.

    >>> decode_threads(cores=40, gpus=4), decode_threads(cores=8, gpus=2)
    (24, 1)
    """
    return max(1, cores - 4 * gpus)


def batch_for(precision: str, batch: int) -> int:
    """Return the images of a process in a step: twice as many where numbers have 16 bits.

    >>> batch_for("fp32", 64), batch_for("bf16", 64)
    (64, 128)
    """
    return batch * PRECISIONS[precision]


@dataclass(frozen=True)
class Mean:
    """Several runs of the same."""

    images_per_second: float
    run_variation: float | None
    """The fastest less the slowest, over the mean; ``None`` for a single run."""
    step_variation: float
    """The mean of the runs' own."""

    @property
    def is_steady(self) -> bool | None:
        """Whether it varies by no more than the papers' did; ``None``: one run does not say."""
        if self.run_variation is None:
            return None
        return max(self.run_variation, self.step_variation) <= MOST_VARIATION

    def values(self) -> dict[str, Any]:
        """Return what a summary has of it."""
        return {**vars(self), "is_steady": self.is_steady}


def mean_of(speeds: Sequence[float], step_variations: Sequence[float]) -> Mean:
    """Return the mean of runs, by their images/s and the variation of their steps."""
    mean = fmean(speeds)
    spread = (max(speeds) - min(speeds)) / mean if len(speeds) > 1 else None
    return Mean(mean, spread, fmean(step_variations))
