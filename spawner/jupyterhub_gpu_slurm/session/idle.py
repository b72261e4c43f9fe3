"""The idle time of a session, and its limits by group."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

# A session that is over its limit says so every few seconds; what is older says nothing.
_FRESH = timedelta(minutes=2)
# Every session says so every five minutes; who has not for longer cannot be heard.
_HEARD = timedelta(minutes=15)


@dataclass(frozen=True)
class IdleReport:
    """Idle time that a session reported, and the limit at that time."""

    idle: timedelta
    heard_at: datetime
    limit: timedelta | None
    """``None``: it may be unused for as long as its time lasts."""

    def is_over(self, now: datetime) -> bool:
        """Say whether the session is to end.

        Only a session's own fresh word counts. One that cannot be heard is not ended for that.
        """
        fresh = now - self.heard_at <= _FRESH
        return self.limit is not None and self.idle >= self.limit and fresh


class IdleTracker:
    """Hears for how long a session was not used.

    JupyterHub's own ``last_activity`` is of no help: the requests of an open page count as
    activity there, and a cell that runs with no page open does not.
    """

    report: IdleReport | None = None

    def hear(self, seconds: int, limit: timedelta | None, now: datetime) -> None:
        """Take the session's word."""
        self.report = IdleReport(timedelta(seconds=seconds), now, limit)

    def unused(self, now: datetime) -> IdleReport | None:
        """Return why the session is to end; ``None`` if it is used, or may be unused for longer."""
        return self.report if self.report and self.report.is_over(now) else None

    def use(self, idle_after: timedelta, now: datetime) -> str:
        """Say whether its GPUs are used, idle, or that nothing is known of it."""
        report = self._heard(now)
        if report is None:
            return "unknown"
        return "idle" if report.idle >= idle_after else "used"

    def to_json(self, now: datetime) -> dict[str, object]:
        """Return what the culler goes by, and what the cluster page shows; not to be read back."""
        report = self._heard(now)
        if report is None:
            return {}
        said: dict[str, object] = {
            "idle_seconds": round(report.idle.total_seconds()),
            "idle_heard_at": report.heard_at.isoformat(),
        }
        return {**said, "is_unused": True} if self.unused(now) else said

    def _heard(self, now: datetime) -> IdleReport | None:
        """Return the session's last word; ``None`` where that is too old to be true."""
        return self.report if self.report and now - self.report.heard_at <= _HEARD else None


def limit_for(
    default_minutes: float, by_group: Mapping[str, float], groups: Collection[str]
) -> timedelta | None:
    """Return the limit of a member of ``groups``: the most generous of theirs, else the default.

    0 minutes are no limit, and the most generous of all.
    """
    minutes = [value for name, value in by_group.items() if name in groups] or [default_minutes]
    return None if 0 in minutes else timedelta(minutes=max(minutes))


def warning_for(limit: timedelta | None, warning_minutes: float) -> timedelta:
    """Return how long before its end a session warns; a short limit leaves at most half of it."""
    warning = timedelta(minutes=warning_minutes)
    return warning if limit is None else min(warning, limit / 2)


def limits_as_json(limit: timedelta | None, warning_minutes: float) -> dict[str, int | None]:
    """Return what a session is told of them, in whole seconds."""
    warning = warning_for(limit, warning_minutes)
    return {
        "limit_seconds": None if limit is None else max(1, round(limit.total_seconds())),
        "warning_seconds": round(warning.total_seconds()),
    }
