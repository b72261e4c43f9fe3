"""Owners of what is put back: users and groups that this machine must have."""

import grp
import pwd

from dsportal.backup.manifest import BackupError


def check(user: str, group: str) -> None:
    """Look whether both are known here.

    A number that had no name when it was packed, here an empty one, comes back as that number.

    Raises:
        BackupError: one is not.

    """
    try:
        if user:
            pwd.getpwnam(user)
        if group:
            grp.getgrnam(group)
    except KeyError as error:
        raise BackupError(f"there is no {error} here: deploy first, then restore") from error
