"""What a user may have, and the answer to a request.

A *request* is what the user asked for, with gaps. An *accepted* one has every value, and is known
to fit on one node of a partition that is open to the user.
"""

from dataclasses import dataclass
from datetime import timedelta

from spawner.errors import OverLimit
from spawner.options import SessionRequest
from spawner.resources import Resources, ResourceShape


@dataclass(frozen=True)
class PartitionLimit:
    """What one session may have in one partition."""

    name: str
    max_gpus: int
    max_time: timedelta | None


@dataclass(frozen=True)
class Limits:
    """What one user may have: the partitions open to the user, the default first."""

    partitions: tuple[PartitionLimit, ...]

    @property
    def max_gpus(self) -> int:
        """The most GPUs that any of the partitions gives on one node."""
        return max((limit.max_gpus for limit in self.partitions), default=0)


@dataclass(frozen=True)
class Defaults:
    """What a session gets where the user says nothing."""

    gpus: int = 1
    time: timedelta = timedelta(hours=8)
    partition: str | None = None
    """``None``: the cluster's own default."""


@dataclass(frozen=True)
class AcceptedRequest:
    """A request that may be submitted."""

    resources: Resources
    time: timedelta
    partition: str


def accept(
    request: SessionRequest, limits: Limits, shape: ResourceShape, defaults: Defaults
) -> AcceptedRequest:
    """Fill the gaps of a request and check it.

    Raises `OverLimit` with a sentence for the user.
    """
    if not limits.partitions:
        raise OverLimit("No partition of the cluster is open to you now; ask its administrators.")
    limit = _limit_of(request.partition, limits)
    gpus = min(defaults.gpus, limit.max_gpus) if request.gpus is None else request.gpus
    if gpus > limit.max_gpus:
        raise OverLimit(
            f"{gpus} GPUs were asked for; one session in partition {limit.name} "
            f"can have at most {limit.max_gpus}."
        )
    time = request.time
    if time is None:
        time = defaults.time if limit.max_time is None else min(defaults.time, limit.max_time)
    elif limit.max_time is not None and time > limit.max_time:
        raise OverLimit(
            f"{hours(time)} hours were asked for; partition {limit.name} "
            f"allows at most {hours(limit.max_time)}."
        )
    return AcceptedRequest(shape.resources(gpus), time, limit.name)


def hours(time: timedelta) -> str:
    """Return a time as hours for people: ``8``, ``0.5``."""
    return f"{time / timedelta(hours=1):g}"


def _limit_of(name: str | None, limits: Limits) -> PartitionLimit:
    if name is None:
        return limits.partitions[0]
    for limit in limits.partitions:
        if limit.name == name:
            return limit
    names = ", ".join(limit.name for limit in limits.partitions)
    raise OverLimit(f"Partition {name} is not open to you. You can use: {names}.")
