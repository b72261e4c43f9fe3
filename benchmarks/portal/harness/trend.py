"""How fast something grows: a straight line through means of samples, and how sure that is."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

BLOCK_SECONDS = 300.0
"""Samples of a process that follow each other within seconds are alike, and a line through many of
them would seem surer than it is. The means of blocks that are long beside that likeness are nearly
independent: the method of batch means (Law and Kelton, Simulation Modeling and Analysis, chapter
9). Five minutes serve where a deviation is forgotten within about a minute."""
FEWEST = 6
"""Blocks of one life: half an hour. Each further life takes one more, for its own height."""
_NORMAL_95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Trend:
    """Growth for each hour, with the ends of its 95 % confidence interval."""

    per_hour: float
    low: float
    high: float


def trend(series: Mapping[object, Sequence[tuple[float, float]]]) -> Trend | None:
    """Fit one slope to the (seconds, value) of several lives of a thing, each with its own height.

    A process that was killed and started again begins low: one line through both would say that it
    shrinks. ``None``: too few blocks, see `FEWEST`. The interval takes blocks for independent: what
    lasts longer than one, such as a morning with many users, is not in it.
    """
    pairs: list[tuple[float, float]] = []
    lives = 0
    for points in series.values():
        if means := list(_block_means(points)):
            time, height = fmean(at for at, _ in means), fmean(value for _, value in means)
            pairs += [(at - time, value - height) for at, value in means]
            lives += 1
    spread = sum(at * at for at, _ in pairs)
    free = len(pairs) - lives - 1
    if free < FEWEST - 2 or spread == 0:
        return None
    slope = sum(at * value for at, value in pairs) / spread
    rest = sum((value - slope * at) ** 2 for at, value in pairs)
    error = student_95(free) * math.sqrt(rest / free / spread)
    return Trend(*(3600 * each for each in (slope, slope - error, slope + error)))


def _block_means(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Give the mean moment and value of each block of one life; all blocks are equally long."""
    if not points:
        return
    begin, seconds = points[0][0], points[-1][0] - points[0][0]
    count = round(seconds / BLOCK_SECONDS)
    blocks: dict[int, list[tuple[float, float]]] = {}
    for at, value in points if count else ():
        number = min(int(count * (at - begin) / seconds), count - 1)
        blocks.setdefault(number, []).append((at, value))
    for block in blocks.values():
        yield fmean(at for at, _ in block), fmean(value for _, value in block)


def student_95(free: int) -> float:
    """Return the two-sided 95 % quantile of Student's t (Abramowitz and Stegun, 26.7.5)."""
    z = _NORMAL_95
    return (
        z
        + (z**3 + z) / (4 * free)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
    )
