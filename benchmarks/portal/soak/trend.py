"""How fast something grows: a straight line through samples, and how sure that is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

FEWEST = 10
_TWO_SIDED_95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Trend:
    """Growth for each hour, with the ends of its 95 % confidence interval."""

    per_hour: float
    low: float
    high: float


def trend(series: Mapping[object, Sequence[tuple[float, float]]]) -> Trend | None:
    """Fit one slope to the (seconds, value) of several lives of a thing, each with its own height.

    A process that was killed and started again begins low: one line through both would say that it
    shrinks. ``None``: fewer than `FEWEST` samples, or all at the same moment. The interval takes
    the samples for independent of each other; where they are not, it is too narrow.
    """
    pairs: list[tuple[float, float]] = []
    for points in series.values():
        if points:
            time, height = fmean(at for at, _ in points), fmean(value for _, value in points)
            pairs += [(at - time, value - height) for at, value in points]
    spread = sum(at * at for at, _ in pairs)
    free = len(pairs) - len(series) - 1
    if len(pairs) < FEWEST or free < 1 or spread == 0:
        return None
    slope = sum(at * value for at, value in pairs) / spread
    rest = sum((value - slope * at) ** 2 for at, value in pairs)
    error = _TWO_SIDED_95 * math.sqrt(rest / free / spread)
    return Trend(*(3600 * each for each in (slope, slope - error, slope + error)))
