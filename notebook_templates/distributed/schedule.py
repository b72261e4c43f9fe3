"""How many steps a training has, and how fast it learns at which: the same for every framework."""

import argparse
import math
from dataclasses import dataclass


class ScheduleError(ValueError):
    """There is no training with these settings; the message says what to change."""


def rate_at(step: int, peak: float, rising: int, steps: int = 0) -> float:
    """Return a step's learning rate: up along a line in the ``rising`` first steps, then down.

    Down to 0 along half a cosine, where it would be after ``steps``; with 0 it stays at its peak.
    Goyal et al. 2017 (arXiv:1706.02677) for the warm-up, Loshchilov and Hutter 2016
    (arXiv:1608.03983) for the cosine.
    """
    if step < rising:
        return peak * (step + 1) / rising
    if not steps:
        return peak
    falling = max(1, steps - rising)
    return peak * (1 + math.cos(math.pi * (step - rising) / falling)) / 2


def counted(number: int, one: str, many: str) -> str:
    """Say a number with its noun: ``1 process``, ``2 processes``."""
    return f"{number} {one if number == 1 else many}"


@dataclass(frozen=True)
class Schedule:
    """The steps of a training.

    Iterations = epochs x images / (batch x GPUs), as the papers count.
    """

    images: int
    batch: int
    """Images of a process in a step."""
    ranks: int
    epochs: int
    most_steps: int
    """Where it ends before the epochs do; 0: nowhere."""
    rate: float
    """Learning rate for 256 images a step."""
    warmup: float
    """Share of all steps in which the rate rises."""
    readers: int = 1
    """Processes that read for a rank, each its own images; 1 where any of them reads any image."""

    @classmethod
    def of(
        cls, settings: argparse.Namespace, images: int, ranks: int, readers: int = 1
    ) -> "Schedule":
        """Make it from the command line; raises `ScheduleError` where the images fill no step."""
        s = settings
        schedule = cls(images, s.batch, ranks, s.epochs, s.steps, s.rate, s.warmup, readers)
        return schedule.checked()

    def checked(self) -> "Schedule":
        """Return it; raises `ScheduleError` where the images fill no step."""
        if self.steps_an_epoch == 0:
            raise ScheduleError(
                f"{self.images} images do not fill one step of {self.batch} images on "
                f"{counted(self.ranks, 'process', 'processes')}. Set a smaller batch."
            )
        return self

    @property
    def total(self) -> int:
        """Images of all processes in a step."""
        return self.batch * self.ranks

    @property
    def steps_an_epoch(self) -> int:
        """Images that fill no whole step wait for the next epoch."""
        return self.images // (self.ranks * self.readers) // self.batch * self.readers

    @property
    def steps(self) -> int:
        """Of all epochs."""
        return self.epochs * self.steps_an_epoch

    @property
    def last_step(self) -> int:
        """Where the training ends."""
        return min(self.most_steps, self.steps) if self.most_steps else self.steps

    @property
    def peak(self) -> float:
        """The highest learning rate."""
        return self.rate * self.total / 256

    def ends_at(self, step: int) -> bool:
        """Whether an epoch or the training ends with this step."""
        return step == self.last_step or step % self.steps_an_epoch == 0

    def rate_at(self, step: int) -> float:
        """Return the learning rate: up along a line, then down to 0 along half a cosine."""
        return rate_at(step, self.peak, round(self.warmup * self.steps), self.steps)

    def words(self) -> list[str]:
        """Say how the figures come about."""
        total, images = self.total, f"{self.images:,} images"
        processes = counted(self.ranks, "process", "processes")
        epochs = counted(self.epochs, "epoch", "epochs")
        return [
            f"{total} images a step = {self.batch} a process x {processes}",
            f"{counted(self.steps_an_epoch, 'step', 'steps')} an epoch = {images} / {total} a step",
            f"{counted(self.steps, 'step', 'steps')} = {epochs} x {images} / {total} a step",
            f"learning rate up to {self.peak:.4g} = {self.rate:g} x {total} / 256",
        ]
