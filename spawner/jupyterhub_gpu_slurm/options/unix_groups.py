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
        account = pwd.getpwnam(username)
    except KeyError:
        return []
    names = []
    for gid in os.getgrouplist(username, account.pw_gid):
        with contextlib.suppress(KeyError):
            names.append(grp.getgrgid(gid).gr_name)
    return names
