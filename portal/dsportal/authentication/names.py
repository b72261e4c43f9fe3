"""User names: from what people type at the login to the one name in the hub.

One person has one name in the hub: the Unix name, in small letters.
"""

import re

# useradd(8) on Debian: at most 32 characters. Capitals are folded before.
_UNIX_NAME = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
_LONGEST_SHOWN = 32


def unix_name(typed: str) -> str | None:
    """Give the one Unix name that a typed name stands for, None where it cannot be one.

    Only ASCII letters fold: the Kelvin sign and its like are not another way to write a name.
    """
    name = typed.lower() if typed.isascii() else ""
    return name if _UNIX_NAME.fullmatch(name) else None


def without_realm(typed: str, realm: str) -> str:
    """Take the realm off a name such as user1@corp.example, where it is the site's own.

    >>> without_realm("User1@CORP.example", "corp.example")
    'User1'
    """
    name, _, typed_realm = typed.partition("@")
    return name if realm and typed_realm.lower() == realm.lower() else typed


def shown(typed: str) -> str:
    """Write a typed name for the log: on one line, cut where it is long."""
    cut = typed if len(typed) <= _LONGEST_SHOWN else f"{typed[:_LONGEST_SHOWN]}..."
    return ascii(cut)
