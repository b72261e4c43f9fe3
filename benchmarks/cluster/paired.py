"""How much slower one program is than another, from short bursts of both in turn.

A round is four bursts on one core, A B B A or B A A B, all of the same number of steps. The mean of
its two log-ratios is free of what grows evenly meanwhile, such as a processor's temperature. The
result is the median of the rounds, with an interval from the bootstrap: Efron, Tibshirani: An
Introduction to the Bootstrap, 1993, chapter 13 (percentiles).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean, median

import numpy as np

CONFIDENCE = 0.95
FEWEST_ROUNDS = 6
"""Of fewer, even the smallest and largest are no interval of 95 % for a median: 2 / 2**5 > 0.05."""
_RESAMPLES = 10_000


@dataclass(frozen=True)
class Burst:
    """What some steps took."""

    wall_seconds: float
    processor_seconds: float
    """Of the process, with all of its threads."""


@dataclass(frozen=True)
class Round:
    """Two bursts of each, which lay as ABBA."""

    bare: tuple[Burst, Burst]
    other: tuple[Burst, Burst]

    def log_ratio(self, seconds: Callable[[Burst], float]) -> float:
        """Return log(other's speed / bare's) by one of the clocks."""
        bare, other = (fmean(log(seconds(one)) for one in two) for two in (self.bare, self.other))
        return bare - other


@dataclass(frozen=True)
class Loss:
    """The share of its speed that a program loses; below 0 where it gains."""

    median: float
    low: float
    """The interval's ends."""
    high: float

    @property
    def half_width(self) -> float:
        """Say how exact it is."""
        return (self.high - self.low) / 2


def alternated(number: int, bare: Callable[[], Burst], other: Callable[[], Burst]) -> Round:
    """Run a round; who is first changes from round to round."""
    if number % 2:
        second, bare_one, bare_two, last = other(), bare(), bare(), other()
        return Round((bare_one, bare_two), (second, last))
    first, other_one, other_two, last = bare(), other(), other(), bare()
    return Round((first, last), (other_one, other_two))


def loss(log_ratios: Sequence[float], seed: int = 1) -> Loss:
    """Return the median loss of the rounds and its interval; ValueError if they are too few."""
    if len(log_ratios) < FEWEST_ROUNDS:
        raise ValueError(f"{len(log_ratios)} rounds are too few; {FEWEST_ROUNDS} give an interval")
    drawn = np.random.default_rng(seed).choice(log_ratios, (_RESAMPLES, len(log_ratios)))
    outside = (1 - CONFIDENCE) / 2
    slow, fast = np.quantile(np.median(drawn, axis=1), (outside, 1 - outside))
    return Loss(*(float(-np.expm1(ratio)) for ratio in (median(log_ratios), fast, slow)))
