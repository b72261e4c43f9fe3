"""The groups of a user, as the machine's name service knows them."""

import contextlib
import grp
import os
import pwd


def groups_of(username: str) -> list[str]:
    """Return the names of a user's Unix groups; none for a user whom the system does not know.

    It may ask a directory: call it in a thread.
    """
    try:
        return known_groups_of(username)
    except KeyError:
        return []


def known_groups_of(username: str) -> list[str]:
    """Return them; raises `KeyError` for a user whom the system does not know."""
    names = []
    for gid in os.getgrouplist(username, pwd.getpwnam(username).pw_gid):
        with contextlib.suppress(KeyError):
            names.append(grp.getgrgid(gid).gr_name)
    return names
