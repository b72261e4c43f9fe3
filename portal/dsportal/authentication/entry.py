"""An LDAP entry: what a directory holds under one distinguished name (DN)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ldap3.utils.dn import parse_dn

# RFC 4514, 2.4: a character, or a byte as two hexadecimal digits.
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
# White space of a value itself: escaped, or other than the plain spaces that may stand around one.
_OWN_SPACE = re.compile(r"(\\[^\s])|\\?([^\S ])|\\( )")


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
    r"""Give the value of a DN's first part, None where that is not the attribute.

    >>> first_of("cn=staff,ou=groups,dc=example", "CN")
    'staff'
    >>> first_of(r"cn=C# \2B Python,ou=groups,dc=example", "cn")
    'C# + Python'
    """
    name, value = _parts(dn)[0]
    return value if name == attribute.lower() else None


def is_below(dn: str, base: str) -> bool:
    """Whether a DN belongs to the branch below another one.

    >>> is_below("cn=staff,OU=Groups,dc=example", "ou=groups, dc=example")
    True
    """
    parts, branch = _folded(dn), _folded(base)
    return len(parts) > len(branch) and parts[-len(branch) :] == branch


def realm_of(dn: str) -> str:
    """Give the domain that a DN ends with, empty where it names none.

    >>> realm_of("ou=people,dc=corp,dc=example")
    'corp.example'
    """
    return ".".join(value for name, value in _folded(dn) if name == "dc")


def _folded(dn: str) -> list[tuple[str, str]]:
    return [(name, value.lower()) for name, value in _parts(dn)]


def _parts(dn: str) -> list[tuple[str, str]]:
    # OpenLDAP writes C# as it stands, as RFC 4514 lets it; ldap3 takes it once it is escaped. Its
    # strip takes any white space, and would make the group "admins" of one with a tab behind that.
    parsed = parse_dn(_OWN_SPACE.sub(_in_bytes, dn), escape=True, strip=True)
    return [(name.lower(), _unescaped(value)) for name, value, _ in parsed]


def _in_bytes(found: re.Match[str]) -> str:
    space = found[2] or found[3]
    return "".join(f"\\{byte:02X}" for byte in space.encode()) if space else found[0]


def _unescaped(value: str) -> str:
    plain = _ESCAPED.sub(
        lambda found: bytes.fromhex(found[1].decode()) if len(found[1]) == 2 else found[1],
        value.encode(),
    )
    return plain.decode("utf-8", "replace")
