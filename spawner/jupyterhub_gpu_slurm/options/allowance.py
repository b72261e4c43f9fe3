"""The limits that a site sets for its users, by group.

A *table* is what the site wrote: for everybody (the default) or for one group. An *allowance* is
what one user gets of the tables. How several groups of a user combine is said at :func:`combine`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from jupyterhub_gpu_slurm.slurm.records import SLURM_NAME

_T = TypeVar("_T")
_MOST_HOURS = 24 * 365


@dataclass(frozen=True)
class Allowance:
    """Limits that a table sets, or that a user has. ``None``: no limit."""

    max_gpus_per_session: int | None = None
    max_gpus: int | None = None
    """At once, over all sessions of the user."""
    max_time: timedelta | None = None
    """Of one session."""
    max_sessions: int | None = None
    """At once, those that wait in the queue too."""
    partitions: frozenset[str] | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    reservations: frozenset[str] | None = None
    """Which ones the user may choose instead; ``None``: none."""
    constraints: frozenset[str] | None = None
    """The node features that the user may ask for; ``None``: none."""


NO_LIMITS = Allowance()


def combine(
    default: Allowance, by_group: Mapping[str, Allowance], groups: Collection[str]
) -> Allowance:
    """Return what a member of ``groups`` may have.

    Each key is decided by itself:

    - a figure is the highest that a group of the user grants;
    - partitions, reservations and constraints are those that any group of the user grants;
    - account, QOS and reservation are the first group's, in the order of ``by_group``;
    - a key that none of the user's groups grants is the default's.
    """
    mine = [allowance for name, allowance in by_group.items() if name in groups]

    def granted(key: Callable[[Allowance], _T | None]) -> list[_T]:
        values = [value for one in mine if (value := key(one)) is not None]
        fallback = key(default)
        return values or ([] if fallback is None else [fallback])

    def all_granted(key: Callable[[Allowance], frozenset[str] | None]) -> frozenset[str] | None:
        lists = granted(key)
        return frozenset().union(*lists) if lists else None

    return Allowance(
        max_gpus_per_session=max(granted(lambda one: one.max_gpus_per_session), default=None),
        max_gpus=max(granted(lambda one: one.max_gpus), default=None),
        max_time=max(granted(lambda one: one.max_time), default=None),
        max_sessions=max(granted(lambda one: one.max_sessions), default=None),
        partitions=all_granted(lambda one: one.partitions),
        account=next(iter(granted(lambda one: one.account)), None),
        qos=next(iter(granted(lambda one: one.qos)), None),
        reservation=next(iter(granted(lambda one: one.reservation)), None),
        reservations=all_granted(lambda one: one.reservations),
        constraints=all_granted(lambda one: one.constraints),
    )


def read(table: object) -> Allowance:
    """Read a table as a configuration holds it: ``{"max_gpus": 4, "max_hours": 8}``.

    Raises `ValueError` with the key, the value and the rule.
    """
    if not isinstance(table, Mapping):
        raise ValueError(f"{table!r}: must be a table such as {{'max_gpus': 4}}")
    for key in table:
        if key not in KEYS:
            raise ValueError(f"{key!r} is not a known key; the keys are {', '.join(KEYS)}")
    values = {key: read_value(key, table[key]) for key, read_value in KEYS.items() if key in table}
    return Allowance(max_time=values.pop("max_hours", None), **values)


def _count(key: str, value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{key} = {value!r}: must be a whole number, at least 0")
    return value


def _time(key: str, value: object) -> timedelta:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 < value <= _MOST_HOURS
    ):
        raise ValueError(f"{key} = {value!r}: must be hours, more than 0, at most {_MOST_HOURS}")
    return timedelta(hours=value)


def _word(key: str, value: object) -> str:
    if not isinstance(value, str) or not SLURM_NAME.fullmatch(value):
        raise ValueError(f"{key} = {value!r}: must be one word of letters, digits and _ . @ -")
    return value


def _words(key: str, value: object) -> frozenset[str]:
    if isinstance(value, str) or not isinstance(value, Collection) or not value:
        raise ValueError(f"{key} = {value!r}: must be a list with at least one name")
    return frozenset(_word(key, name) for name in value)


KEYS: Mapping[str, Callable[[str, object], Any]] = {
    "max_gpus_per_session": _count,
    "max_gpus": _count,
    "max_hours": _time,
    "max_sessions": _count,
    "partitions": _words,
    "account": _word,
    "qos": _word,
    "reservation": _word,
    "reservations": _words,
    "constraints": _words,
}
"""Of a table, and how the value of each is read."""
