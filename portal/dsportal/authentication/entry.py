"""An LDAP entry: what a directory holds under one distinguished name (DN)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ldap3.utils.dn import parse_dn


@dataclass(frozen=True)
class Entry:
    """A person or a group; the attributes' names are in small letters."""

    dn: str
    attributes: Mapping[str, Sequence[bytes]]

    def values(self, attribute: str) -> Sequence[bytes]:
        """Give the values as they came; none where there is no such attribute."""
        return self.attributes.get(attribute.lower(), ())

    def texts(self, attribute: str) -> list[str]:
        """Give the values as text."""
        return [value.decode("utf-8", "replace") for value in self.values(attribute)]

    def own_name(self, attribute: str) -> str | None:
        """Give the one name among several values: the one that the entry's own DN has."""
        values = self.texts(attribute)
        if len(values) == 1:
            return values[0]
        in_dn = first_of(self.dn, attribute)
        return in_dn if in_dn in values else None


def first_of(dn: str, attribute: str) -> str | None:
    """Give the value of a DN's first part, None where that is not the attribute.

    >>> first_of("cn=staff,ou=groups,dc=example", "CN")
    'staff'
    """
    name, value, _ = parse_dn(dn, strip=True)[0]
    return value if name.lower() == attribute.lower() else None


def is_below(dn: str, base: str) -> bool:
    """Whether a DN belongs to the branch below another one.

    >>> is_below("cn=staff,OU=Groups,dc=example", "ou=groups, dc=example")
    True
    """
    parts, branch = _parts(dn), _parts(base)
    return len(parts) > len(branch) and parts[-len(branch) :] == branch


def realm_of(dn: str) -> str:
    """Give the domain that a DN ends with, empty where it names none.

    >>> realm_of("ou=people,dc=corp,dc=example")
    'corp.example'
    """
    return ".".join(value for name, value in _parts(dn) if name == "dc")


def _parts(dn: str) -> list[tuple[str, str]]:
    return [(name.lower(), value.lower()) for name, value, _ in parse_dn(dn, strip=True)]
