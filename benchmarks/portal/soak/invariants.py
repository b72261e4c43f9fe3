"""What must hold at any moment, as rules over what Slurm, the hub and the crowd say.

Each rule gives the users or jobs that break it. What one look shows may be under way: the watcher
reports what two looks in a row show.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from statistics import quantiles

from benchmarks.portal.soak.slurm import Allocation, ListedJob
from benchmarks.portal.soak.stays import Stay, StayState

_LIVE = {StayState.STARTING, StayState.HERE, StayState.LEAVING}


def lost(stays: Mapping[str, Stay], jobs: Iterable[ListedJob]) -> Iterator[str]:
    """Give the users who have a session whose job does not run."""
    running = {job.job_id for job in jobs if job.state == "RUNNING"}
    for stay in stays.values():
        if stay.state is StayState.HERE and stay.job_id not in running:
            yield stay.user


def doubled(sessions: Iterable[ListedJob]) -> Iterator[str]:
    """Give the users with two jobs of sessions that are not over."""
    counts = Counter(job.user for job in sessions if not job.is_over)
    yield from (user for user, count in counts.items() if count > 1)


def orphans(stays: Mapping[str, Stay], sessions: Iterable[ListedJob]) -> Iterator[str]:
    """Give the jobs of sessions whose user has none and wants none."""
    for job in sessions:
        stay = stays.get(job.user)
        if not job.is_over and stay is not None and stay.state not in _LIVE:
            yield job.job_id


def forgotten(stays: Mapping[str, Stay], ready: Collection[str]) -> Iterator[str]:
    """Give the users who have a session of which the hub does not know that it is ready."""
    for stay in stays.values():
        if stay.state is StayState.HERE and stay.user not in ready:
            yield stay.user


def given_twice(allocations: Iterable[Allocation]) -> Iterator[tuple[str, int]]:
    """Give the GPUs that two running jobs have."""
    counts = Counter(gpu for allocation in allocations for gpu in allocation.gpus)
    yield from (gpu for gpu, count in counts.items() if count > 1)


def p99(milliseconds: list[float]) -> float | None:
    """Return the 99th percentile; ``None`` for fewer than a hundred values."""
    if len(milliseconds) < 100:
        return None
    return quantiles(milliseconds, n=100, method="inclusive")[98]


def most_in_a_minute(counts: Iterable[tuple[float, int]]) -> float:
    """Return the most questions in a minute, from (seconds, how many so far).

    Counters that fall have begun again: what was asked around that moment is not known.
    """
    rates = []
    window: list[tuple[float, int]] = []
    for at, count in counts:
        if window and count < window[-1][1]:
            window = []
        window.append((at, count))
        while window[-1][0] - window[0][0] > 75:
            window.pop(0)
        seconds = at - window[0][0]
        if seconds >= 45:
            rates.append(60 * (count - window[0][1]) / seconds)
    return max(rates, default=0.0)
