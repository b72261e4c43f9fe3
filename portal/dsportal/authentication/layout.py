"""Schemas of directories: where each kind keeps people and groups, and what it calls them.

Active Directory's names are those of its schema, [MS-ADA1] to [MS-ADA3].
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dsportal.authentication.entry import realm_of


@dataclass(frozen=True)
class Schema:
    """Defaults that all directories of one kind have in common.

    ``group_filter`` finds a person's groups from ``{userdn}`` and ``{uid}``; ``parent_filter`` the
    groups that have a group as a member, with its DN as ``{dn}`` and a matching rule as ``{rule}``.
    """

    user_attribute: str
    user_filter: str
    group_attribute: str
    group_filter: str
    parent_filter: str


SCHEMAS: Mapping[str, Schema] = MappingProxyType(
    {
        "posix": Schema(
            user_attribute="uid",
            user_filter="(objectClass=*)",
            group_attribute="cn",
            group_filter="(|(member={userdn})(uniqueMember={userdn})(memberUid={uid}))",
            parent_filter="(member{rule}={dn})(uniqueMember={dn})",
        ),
        "active_directory": Schema(
            user_attribute="sAMAccountName",
            user_filter="(objectClass=user)",
            group_attribute="sAMAccountName",
            group_filter="(member={userdn})",
            parent_filter="(member{rule}={dn})",
        ),
    }
)


@dataclass(frozen=True)
class Layout:
    """Schema of the site's directory; ``bind_as`` makes a user's bind name from ``{name}``."""

    kind: str
    user_base: str
    user_attribute: str
    user_filter: str
    group_base: str
    group_attribute: str
    group_filter: str
    nested_groups: bool = True
    bind_as: str = ""

    @property
    def is_active_directory(self) -> bool:
        """Whether what only Active Directory understands can be asked for."""
        return self.kind == "active_directory"

    @property
    def parent_filter(self) -> str:
        """What finds the groups that a group belongs to."""
        return SCHEMAS[self.kind].parent_filter


def default_realm(kind: str, user_base: str) -> str:
    """Give the realm of Active Directory's log-in names, which the base of its users has."""
    return realm_of(user_base) if kind == "active_directory" and user_base else ""
