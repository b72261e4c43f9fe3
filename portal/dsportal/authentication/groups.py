"""Rights by group: allowed, admin, and a member of the hub's groups."""

from collections.abc import Iterable, Set
from dataclasses import dataclass


@dataclass(frozen=True)
class Standing:
    """Rights of a user at the hub; ``groups`` are the user's groups there, sorted."""

    allowed: bool
    admin: bool
    groups: tuple[str, ...]


def standing(groups: Iterable[str], *, allowed: Set[str], admin: Set[str]) -> Standing:
    """Judge somebody by their groups; names compare exactly, as Unix compares them.

    >>> standing(["staff", "portal-admins"], allowed={"staff"}, admin={"portal-admins"})
    Standing(allowed=True, admin=True, groups=('portal-admins', 'staff'))
    """
    own = frozenset(groups)
    is_admin = not own.isdisjoint(admin)
    return Standing(
        allowed=is_admin or not own.isdisjoint(allowed),
        admin=is_admin,
        groups=tuple(sorted(own)),
    )
