"""The site's policy: a user's limits, and whether a request is within them.

A *request* is what the user asked for, with gaps. An *accepted* one has every value, and is known
to fit on one node of a partition that is open to the user. What the user's other sessions *hold*
counts from their start's acceptance to the end of their jobs, so those in the queue count too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from jupyterhub_gpu_slurm.errors import OverLimit
from jupyterhub_gpu_slurm.options import words
from jupyterhub_gpu_slurm.options.allowance import NO_LIMITS, Allowance
from jupyterhub_gpu_slurm.options.choices import LABELS, Choices
from jupyterhub_gpu_slurm.options.request import SessionRequest
from jupyterhub_gpu_slurm.resources import Resources, ResourceShape
from jupyterhub_gpu_slurm.slurm.associations import Association


@dataclass(frozen=True)
class PartitionLimit:
    """Limits of one session in a partition."""

    name: str
    max_gpus: int
    max_time: timedelta | None
    max_of_type: tuple[tuple[str, int], ...] = ()
    """The types of GPU that a request can name, each with the most of it for one session."""
    features: frozenset[str] | None = None
    """What its nodes have, for ``--constraint``; ``None``: not known."""
    needs_reservation: bool = False


@dataclass(frozen=True)
class Limits:
    """Limits and choices of a user: the partitions open to the user, the default first."""

    partitions: tuple[PartitionLimit, ...]
    allowance: Allowance = NO_LIMITS
    """What the site grants the user, whatever a partition would give."""
    images: Mapping[str, str] = field(default_factory=dict)
    """The images in which a session may run: name -> title."""
    associations: tuple[Association, ...] = ()
    """The accounts and QOS that Slurm's accounting gives the user, where they can be chosen."""

    @property
    def choices(self) -> Choices:
        """What else the user can choose."""
        return Choices(self.allowance, self.associations)


@dataclass(frozen=True)
class Holding:
    """GPUs and sessions that the user already has."""

    gpus: int = 0
    sessions: int = 0


NOTHING = Holding()


@dataclass(frozen=True)
class Defaults:
    """Values for a session whose user makes no choice."""

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
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    """``None`` for these three: Slurm's own choice."""
    constraint: str | None = None
    """``None``: any node."""
    gpu_type: str | None = None
    """``None``: any type."""
    image: str | None = None
    """``None``: in none."""


def accept(
    request: SessionRequest,
    limits: Limits,
    shape: ResourceShape,
    defaults: Defaults,
    holding: Holding = NOTHING,
) -> AcceptedRequest:
    """Fill the gaps of a request and check it.

    Raises `OverLimit` with a sentence for the user.
    """
    if not limits.partitions:
        raise OverLimit(words.NO_PARTITION)
    allowance = limits.allowance
    _check_sessions(allowance, holding)
    limit = _limit_of(request.partition, limits)
    gpus = _gpus(request.gpus, limit, allowance, defaults)
    _check_total(gpus, allowance, holding)
    time = _time(request.time, limit, allowance, defaults)
    return AcceptedRequest(
        shape.resources(gpus),
        time,
        limit.name,
        account=_chosen("account", request, limits, limit) or allowance.account,
        qos=_chosen("qos", request, limits, limit) or allowance.qos,
        reservation=_reservation(request, limits, limit),
        constraint=_constraint(request, limits, limit),
        gpu_type=_gpu_type(request.gpu_type, gpus, limit),
        image=_image(request.image, limits.images),
    )


def left(limits: Limits, holding: Holding) -> Limits:
    """Return what one more session may have now: what a form can offer.

    Raises `OverLimit` when the user may not have one more.
    """
    allowance = limits.allowance
    _check_sessions(allowance, holding)
    free = None if allowance.max_gpus is None else max(0, allowance.max_gpus - holding.gpus)
    partitions = tuple(
        replace(
            limit,
            max_gpus=_least(limit.max_gpus, allowance.max_gpus_per_session, free),
            max_time=_shortest(limit.max_time, allowance.max_time),
        )
        for limit in limits.partitions
    )
    return replace(limits, partitions=partitions)


def holding_in_words(limits: Limits, holding: Holding) -> str:
    """Return what is held and what may be, for the form; empty where it takes nothing away."""
    if limits.allowance.max_gpus is None or not holding.gpus:
        return ""
    return words.held(holding.gpus, holding.sessions, limits.allowance.max_gpus)


def _limit_of(name: str | None, limits: Limits) -> PartitionLimit:
    if name is None:
        return limits.partitions[0]
    for limit in limits.partitions:
        if limit.name == name:
            return limit
    raise OverLimit(words.closed_partition(name, *(limit.name for limit in limits.partitions)))


def _gpus(
    asked: int | None, limit: PartitionLimit, allowance: Allowance, defaults: Defaults
) -> int:
    if asked is None:
        # What others of the user's sessions hold does not lower it: a script that says nothing
        # is refused rather than given less than yesterday.
        most = _least(limit.max_gpus, allowance.max_gpus_per_session, allowance.max_gpus)
        return min(defaults.gpus, most)
    if asked > limit.max_gpus:
        raise OverLimit(words.too_many_for_partition(asked, limit.name, limit.max_gpus))
    most_per_session = allowance.max_gpus_per_session
    if most_per_session is not None and asked > most_per_session:
        raise OverLimit(words.too_many_for_one_session(asked, most_per_session))
    return asked


def _gpu_type(asked: str | None, gpus: int, limit: PartitionLimit) -> str | None:
    if asked is None or gpus == 0:
        return None
    most = dict(limit.max_of_type).get(asked)
    if most is None:
        types = (name for name, _ in limit.max_of_type)
        raise OverLimit(words.no_such_type(asked, limit.name, *types))
    if gpus > most:
        raise OverLimit(words.too_many_for_partition(gpus, limit.name, most, asked))
    return asked


def _image(asked: str | None, offered: Mapping[str, str]) -> str | None:
    if asked is None or asked in offered:
        return asked
    raise OverLimit(words.no_such_image(asked, *offered))


def _chosen(key: str, request: SessionRequest, limits: Limits, limit: PartitionLimit) -> str | None:
    asked: str | None = getattr(request, key)
    if asked is None:
        return None
    allowed = limits.choices.allowed(key, request.account, limit.name)
    if asked not in allowed:
        raise OverLimit(words.not_to_choose(LABELS[key], asked, *sorted(allowed)))
    return asked


def _reservation(request: SessionRequest, limits: Limits, limit: PartitionLimit) -> str | None:
    chosen = _chosen("reservation", request, limits, limit) or limits.allowance.reservation
    if chosen is None and limit.needs_reservation:
        raise OverLimit(words.no_reservation(limit.name))
    return chosen


def _constraint(request: SessionRequest, limits: Limits, limit: PartitionLimit) -> str | None:
    asked = _chosen("constraint", request, limits, limit)
    if asked is not None and limit.features is not None and asked not in limit.features:
        raise OverLimit(words.no_such_feature(asked, limit.name))
    return asked


def _time(
    asked: timedelta | None, limit: PartitionLimit, allowance: Allowance, defaults: Defaults
) -> timedelta:
    if asked is None:
        return _shortest(defaults.time, limit.max_time, allowance.max_time) or defaults.time
    if limit.max_time is not None and asked > limit.max_time:
        raise OverLimit(words.too_long_for_partition(asked, limit.name, limit.max_time))
    if allowance.max_time is not None and asked > allowance.max_time:
        raise OverLimit(words.too_long(asked, allowance.max_time))
    return asked


def _check_sessions(allowance: Allowance, holding: Holding) -> None:
    most = allowance.max_sessions
    if most is None or holding.sessions < most:
        return
    if most == 0:
        raise OverLimit(words.NO_SESSIONS)
    raise OverLimit(words.too_many_sessions(holding.sessions, most))


def _check_total(gpus: int, allowance: Allowance, holding: Holding) -> None:
    most = allowance.max_gpus
    if most is None or gpus == 0 or holding.gpus + gpus <= most:
        return
    if not holding.gpus:
        raise OverLimit(words.too_many_at_once(gpus, most))
    raise OverLimit(words.too_much_held(holding.gpus, holding.sessions, most))


def _least(figure: int, *limits: int | None) -> int:
    return min([figure, *(limit for limit in limits if limit is not None)])


def _shortest(*times: timedelta | None) -> timedelta | None:
    return min((time for time in times if time is not None), default=None)
