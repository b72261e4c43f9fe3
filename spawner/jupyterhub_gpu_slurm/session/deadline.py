"""Time limits of starts and sessions, and by how much a session can be extended.

Glossary. A session's *limit* is how long Slurm lets its job run; its *deadline* is when that time
is up, later by the time for which the job was suspended. An *extension* raises the limit of a job
that runs.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from jupyterhub_gpu_slurm.errors import OverLimit
from jupyterhub_gpu_slurm.options.policy import Limits
from jupyterhub_gpu_slurm.options.words import in_hours
from jupyterhub_gpu_slurm.slurm.records import Job, JobState

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class StartLimits:
    """Time limits of a session's start, in seconds."""

    launch: float = 300.0
    """From the job's start on its node until its server listens."""
    queue: float = 12 * 3600.0


@dataclass(frozen=True)
class ExtensionRules:
    """The site's limits on extensions, besides those that hold for every session."""

    most_at_once: timedelta = timedelta(hours=4)
    most_times: int = 3
    """How often one session may be extended; 0 where sessions are not extended at all."""


@dataclass(frozen=True)
class PossibleExtension:
    """The longest extension that a session can have now."""

    deadline: datetime | None
    """``None``: the job does not run, or has no limit."""
    limit: timedelta
    """The limit as it is; zero where there is no deadline."""
    longest: timedelta
    """In whole minutes; zero where nothing can be added."""
    reason: str = ""
    """Why nothing can be added, for the user."""
    times_left: int = 0
    """How often it can be extended, as far as the site's count of extensions goes."""

    def as_json(self) -> dict[str, object]:
        """Return what the hub tells the session. Moments are seconds since 1970."""
        is_possible = self.deadline is not None and self.longest > timedelta(0)
        until = self.deadline + self.longest if self.deadline and is_possible else None
        return {
            "deadline": self.deadline and round(self.deadline.timestamp()),
            "longest_minutes": self.longest // _MINUTE,
            "until": until and round(until.timestamp()),
            "reason": self.reason,
            "times_left": self.times_left,
        }


def possible_extension(
    job: Job, times: int, limits: Limits, rules: ExtensionRules
) -> PossibleExtension:
    """Say by how much a session can be extended that was extended ``times`` times before."""
    if job.state is JobState.UNKNOWN:
        return _nothing("Slurm cannot say what state the session's job is in at the moment.")
    if job.state is not JobState.RUNNING or job.start is None:
        return _nothing("The session's job is not running.")
    if job.end is None:
        return _nothing("The session's time is not limited.")
    limit = job.end - job.start if job.limit is None else job.limit
    longest, reason = _longest(job, limit, times, limits, rules)
    return PossibleExtension(job.end, limit, longest, reason, max(0, rules.most_times - times))


def extended_limit(minutes: int, possible: PossibleExtension) -> int:
    """Return a session's limit in minutes once ``minutes`` are added.

    Raises `OverLimit` with a sentence for the user.
    """
    longest = possible.longest // _MINUTE
    if longest == 0:
        raise OverLimit(possible.reason)
    if minutes > longest:
        raise OverLimit(
            f"You asked for {minutes} min more; this session can have {longest} min more at most."
        )
    # Slurm counts limits in minutes.
    return possible.limit // _MINUTE + minutes


def _nothing(reason: str) -> PossibleExtension:
    return PossibleExtension(None, timedelta(0), timedelta(0), reason)


def _longest(
    job: Job, limit: timedelta, times: int, limits: Limits, rules: ExtensionRules
) -> tuple[timedelta, str]:
    none = timedelta(0)
    if rules.most_times == 0:
        return none, "Sessions cannot be extended on this portal."
    if times >= rules.most_times:
        return none, f"This session has already been extended {_times(times)}, the most allowed."
    own = next((own for own in limits.partitions if own.name == job.partition), None)
    if own is None:
        return none, f"Partition {job.partition} is no longer open to you."
    added = _whole_minutes(rules.most_at_once)
    for longest, whose in (
        (own.max_time, f"Sessions in partition {own.name}"),
        (limits.allowance.max_time, "Your sessions"),
    ):
        if longest is None:
            continue
        left = _whole_minutes(longest - limit)
        if left <= none:
            return (
                none,
                f"{whose} may last at most {in_hours(longest)}, and this one has reached that.",
            )
        added = min(added, left)
    return added, ""


def _whole_minutes(time: timedelta) -> timedelta:
    return time // _MINUTE * _MINUTE


def _times(times: int) -> str:
    return {1: "once", 2: "twice"}.get(times, f"{times} times")
