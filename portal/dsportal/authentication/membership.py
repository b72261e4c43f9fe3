"""Group membership of a person, nested groups included."""

import logging
from collections.abc import Iterable, Iterator

from ldap3.utils.conv import escape_bytes, escape_filter_chars

from dsportal.authentication.connection import DirectoryConnection
from dsportal.authentication.entry import Entry, first_of, is_below
from dsportal.authentication.layout import Layout

# What has to be read of a person's entry for this.
ATTRIBUTES = ("gidNumber", "memberOf", "primaryGroupID", "objectSid")

# [MS-ADTS] 3.1.1.3.4.4.3, LDAP_MATCHING_RULE_TRANSITIVE_EVAL: the server follows the chain itself.
_IN_CHAIN = ":1.2.840.113556.1.4.1941:"
# More is a mistake, or somebody's mischief. Windows itself stops at some 1,000 groups a person.
_MOST_LEVELS = 10
_MOST_GROUPS = 1000
# DNs in one filter.
_AT_ONCE = 50


class Membership:
    """Collects names of groups, as the directory spells them."""

    def __init__(self, layout: Layout, log: logging.Logger) -> None:
        self._layout = layout
        self._log = log

    def of(self, connection: DirectoryConnection, person: Entry, uid: str) -> tuple[str, ...]:
        """List the groups that have the person, the primary one, and those that have these."""
        layout = self._layout
        wanted = layout.group_filter.format(
            userdn=escape_filter_chars(person.dn), uid=escape_filter_chars(uid)
        )
        found = self._groups(connection, f"(|{wanted}{_primary(person)})")
        # 389 Directory Server and FreeIPA list the groups of a person's groups there as well.
        listed = person.texts("memberOf") if layout.nested_groups else []
        told = [dn for dn in listed if is_below(dn, layout.group_base)]
        names = {first_of(dn, layout.group_attribute) for dn in told}
        if layout.nested_groups:
            found += self._above(connection, {*told, *(group.dn for group in found)})
        names |= {group.own_name(layout.group_attribute) for group in found}
        return tuple(sorted(name for name in names if name))

    def _above(self, connection: DirectoryConnection, start: set[str]) -> list[Entry]:
        """Walk up from groups to those that have them as members; circles end where they began."""
        rule = _IN_CHAIN if connection.is_active_directory else ""
        seen, level, found = {dn.lower() for dn in start}, sorted(start), list[Entry]()
        for _ in range(1 if rule else _MOST_LEVELS):
            parents = {
                group.dn.lower(): group
                for part in _parts(level)
                for group in self._groups(connection, self._parents_of(part, rule))
            }
            new = [group for dn, group in sorted(parents.items()) if dn not in seen]
            found += new
            if rule or not new:
                return found
            seen |= set(parents)
            level = [group.dn for group in new]
            if len(seen) > _MOST_GROUPS:
                break
        self._log.warning(
            "Groups of groups above %s are not followed: more than %d levels or %d groups",
            ", ".join(sorted(start)),
            _MOST_LEVELS,
            _MOST_GROUPS,
        )
        return found

    def _parents_of(self, dns: Iterable[str], rule: str) -> str:
        parent = self._layout.parent_filter
        each = (parent.format(rule=rule, dn=escape_filter_chars(dn)) for dn in dns)
        return f"(|{''.join(each)})"

    def _groups(self, connection: DirectoryConnection, wanted: str) -> list[Entry]:
        return connection.search(self._layout.group_base, wanted, [self._layout.group_attribute])


def _parts(dns: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(dns), _AT_ONCE):
        yield dns[first : first + _AT_ONCE]


def _primary(person: Entry) -> str:
    """Give the filters of a person's primary group: by number, or by Windows' identifier.

    [MS-DTYP] 2.4.2: an identifier ends with a number that is relative to its domain's.
    """
    filters = [
        f"(&(objectClass=posixGroup)(gidNumber={gid}))"
        for gid in person.texts("gidNumber")
        if gid.isdecimal()
    ]
    for sid, rid in zip(person.values("objectSid"), person.texts("primaryGroupID"), strict=False):
        if rid.isdecimal():
            group = sid[:-4] + int(rid).to_bytes(4, "little")
            filters.append(f"(objectSid={escape_bytes(group)})")
    return "".join(filters)
