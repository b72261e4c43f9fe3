"""Who comes when, stays how long, and what fails: drawn before the run, from one seed.

A working day, from 07:30 to 20:00, is compressed to the length of the run. Arrivals are a Poisson
process whose rate follows the day: a storm in the morning, few at lunch, fewer towards the evening.
Stays are log-normal, and nearly all end when people go home. Some users come once instead, early,
and stay nearly all day: what they have open stands side by side.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

DAY_HOURS = 12.5
"""From 07:30 to 20:00."""
RATE = ((0.0, 0.2), (1.5, 4.0), (2.5, 1.5), (4.5, 0.4), (6.0, 1.8), (9.5, 0.6), (11.0, 0.0))
"""Hours after 07:30, and how many come then, relative to other hours; straight lines between."""
VISITS_PER_USER = 2.0
STAY_MEDIAN_HOURS = 1.5
STAY_SIGMA = 0.8
HOME_HOURS = (10.25, 0.75)
"""When people go home (17:45), mean and standard deviation."""
LAST_HOURS = 11.75
ALL_DAY_HOURS = (0.5, 11.25)
"""Who stays all day comes before the first and leaves after the second, until `LAST_HOURS`."""
ALL_DAY_GPUS = (0, 1)
"""One of these, with equal chances: so few that hardly any of these sessions waits in the queue."""
GPUS: Mapping[int, float] = {0: 0.45, 1: 0.35, 2: 0.15, 4: 0.05}
"""How likely a session has so many."""
SHORTEST_SECONDS = 15.0
FAULT_SECONDS = (5.0, 25.0)


@dataclass(frozen=True)
class PlannedVisit:
    """A session that one user wants; times are seconds after the begin of the run."""

    user: int
    begin: float
    end: float
    gpus: int


@dataclass(frozen=True)
class PlainJob:
    """A plain job on several nodes."""

    begin: float
    seconds: float
    nodes: int
    gpus: int
    """On each node."""


@dataclass(frozen=True)
class Fault:
    """What fails when, and for how long where that can be chosen."""

    begin: float
    name: str
    seconds: float
    which: float
    """Chooses among several of a kind, such as nodes: from 0 to 1."""


@dataclass(frozen=True)
class Scale:
    """How large the run is."""

    seconds: float
    users: int
    all_day: int
    """The first so many of the users stay nearly all day, all others come and go."""
    jobs: int
    nodes: int
    gpus_per_node: int
    fault_seconds: float
    """The mean time from one fault to the next."""


@dataclass(frozen=True)
class Day:
    """All that is planned."""

    scale: Scale
    visits: Sequence[PlannedVisit]
    jobs: Sequence[PlainJob]
    faults: Sequence[Fault]


def drawn(seed: int, scale: Scale, fault_names: Sequence[str]) -> Day:
    """Draw the day; the same for the same arguments."""
    chance = Random(seed)  # noqa: S311  # a plan that can be repeated, not a secret
    hour = scale.seconds / DAY_HOURS
    visits = [*_visits(chance, scale, hour), *_all_day(chance, scale, hour)]
    jobs = [
        PlainJob(
            begin=at,
            seconds=max(SHORTEST_SECONDS, hour * chance.lognormvariate(0, STAY_SIGMA)),
            nodes=min(2, scale.nodes),
            gpus=chance.choice((1, scale.gpus_per_node)),
        )
        for at in arrivals(chance, scale.jobs, hour)
    ]
    return Day(scale, visits, jobs, _faults(chance, scale, fault_names))


def rate(hours: float) -> float:
    """Return how many come at this time of the day, relative to other times."""
    for (left, low), (right, high) in pairwise(RATE):
        if left <= hours < right:
            return low + (high - low) * (hours - left) / (right - left)
    return 0.0


def arrivals(chance: Random, expected: float, hour: float) -> list[float]:
    """Draw an inhomogeneous Poisson process of so many events in the mean, by thinning."""
    area = sum((right - left) * (low + high) / 2 for (left, low), (right, high) in pairwise(RATE))
    return thinned(
        chance, lambda at: expected * rate(at / hour) / (area * hour), RATE[-1][0] * hour
    )


def thinned(chance: Random, intensity: Callable[[float], float], end: float) -> list[float]:
    """Draw the times of a Poisson process of this intensity (Lewis and Shedler, 1979)."""
    steps = 1000
    most = max(intensity(end * step / steps) for step in range(steps))
    found: list[float] = []
    at = 0.0
    while most > 0:
        at += chance.expovariate(most)
        if at >= end:
            break
        if chance.random() * most < intensity(at):
            found.append(at)
    return found


def _visits(chance: Random, scale: Scale, hour: float) -> list[PlannedVisit]:
    free_from = dict.fromkeys(range(scale.all_day, scale.users), 0.0)
    visits = []
    for at in arrivals(chance, len(free_from) * VISITS_PER_USER, hour):
        # Who is there already does not come again.
        if absent := [user for user, free in free_from.items() if free <= at]:
            user = chance.choice(absent)
            stay = hour * STAY_MEDIAN_HOURS * chance.lognormvariate(0, STAY_SIGMA)
            home = hour * min(chance.gauss(*HOME_HOURS), LAST_HOURS)
            end = min(max(min(at + stay, home), at + SHORTEST_SECONDS), LAST_HOURS * hour)
            gpus = chance.choices(list(GPUS), weights=list(GPUS.values()))[0]
            visits.append(PlannedVisit(user, at, end, gpus))
            free_from[user] = end + SHORTEST_SECONDS
    return visits


def _all_day(chance: Random, scale: Scale, hour: float) -> list[PlannedVisit]:
    come, leave = ALL_DAY_HOURS
    return [
        PlannedVisit(
            user,
            begin=hour * chance.uniform(0, come),
            end=hour * chance.uniform(leave, LAST_HOURS),
            gpus=chance.choice(ALL_DAY_GPUS),
        )
        for user in range(min(scale.all_day, scale.users))
    ]


def _faults(chance: Random, scale: Scale, names: Sequence[str]) -> list[Fault]:
    """One at a time, each kind once before any comes again; none when the day begins or ends."""
    found: list[Fault] = []
    if not names:
        return found
    at = scale.fault_seconds * chance.uniform(0.5, 1)
    left: list[str] = []
    while at < scale.seconds - scale.fault_seconds / 2:
        left = left or chance.sample(list(names), len(names))
        found.append(Fault(at, left.pop(), chance.uniform(*FAULT_SECONDS), chance.random()))
        at += scale.fault_seconds * math.exp(chance.gauss(0, 0.2))
    return found
