"""GPU hours of users and groups in a span of time, from who held GPUs when.

How it is counted. A *use* is one job's hold of GPUs; its GPU hours are its GPUs times its hours
within the span. One that goes on counts until now; one that was not heard of for a while counts
until it was last seen. A user in several groups counts in each of them in full, since Slurm does
not know for which of them the work was done: so the groups' hours may sum up to more than the
users'.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

_HOUR = timedelta(hours=1)
_FRESH = timedelta(minutes=5)


@dataclass(frozen=True)
class Use:
    """GPUs that a user held for a time."""

    user: str
    groups: frozenset[str]
    gpus: int
    started: datetime
    seen: datetime
    """Until when it is known to have run."""
    ended: datetime | None
    """``None``: it was not seen to end."""
    is_session: bool = True
    """Whether it is a session of the portal, or another job."""
    job_id: int | None = None

    def gpu_hours(self, since: datetime, until: datetime, now: datetime) -> float:
        """Return the GPU hours of the part that is within the span."""
        time = min(self._end(now), until) - max(self.started, since)
        return self.gpus * max(time, timedelta(0)) / _HOUR

    def touches(self, since: datetime, until: datetime, now: datetime) -> bool:
        """Say whether a part of it is within the span."""
        return self.started < until and self._end(now) > since

    def _end(self, now: datetime) -> datetime:
        if self.ended is not None:
            return self.ended
        return now if now - self.seen <= _FRESH else self.seen


@dataclass(frozen=True)
class UsageRow:
    """GPU hours of a user in a span of time."""

    user: str
    groups: tuple[str, ...]
    sessions: int
    """Sessions of the portal, those without GPUs too."""
    gpu_hours: float
    """Of all the user's jobs where Slurm's accounting is asked, else of the sessions."""
    session_gpu_hours: float
    """Of the sessions alone."""


@dataclass(frozen=True)
class GroupRow:
    """GPU hours of a group's members in a span of time."""

    group: str
    users: int
    sessions: int
    gpu_hours: float
    session_gpu_hours: float


def by_user(uses: Iterable[Use], since: datetime, until: datetime, now: datetime) -> list[UsageRow]:
    """Return a row for each user with a use in the span, the largest user of GPUs first."""
    of: dict[str, list[Use]] = defaultdict(list)
    for use in uses:
        if use.touches(since, until, now):
            of[use.user].append(use)
    rows = [
        UsageRow(
            user,
            tuple(sorted(frozenset().union(*(use.groups for use in theirs)))),
            sum(use.is_session for use in theirs),
            _hours(theirs, since, until, now),
            _hours([use for use in theirs if use.is_session], since, until, now),
        )
        for user, theirs in of.items()
    ]
    return sorted(rows, key=lambda row: (-row.gpu_hours, row.user))


def by_group(
    uses: Iterable[Use], since: datetime, until: datetime, now: datetime
) -> list[GroupRow]:
    """Return a row for each group, by the groups that a user was in at the time of each use."""
    of: dict[str, list[Use]] = defaultdict(list)
    for use in uses:
        if use.touches(since, until, now):
            for group in use.groups:
                of[group].append(use)
    rows = [
        GroupRow(
            group,
            len({use.user for use in theirs}),
            sum(use.is_session for use in theirs),
            _hours(theirs, since, until, now),
            _hours([use for use in theirs if use.is_session], since, until, now),
        )
        for group, theirs in of.items()
    ]
    return sorted(rows, key=lambda row: (-row.gpu_hours, row.group))


def _hours(uses: Iterable[Use], since: datetime, until: datetime, now: datetime) -> float:
    return sum(use.gpu_hours(since, until, now) for use in uses)
