"""The processes of this machine, as root sees them."""

import pwd
from typing import Any

import psutil


def running(*words: str, user: str = "") -> list[psutil.Process]:
    """Return those with all the words somewhere in their command lines; of one user where given."""
    uid = pwd.getpwnam(user).pw_uid if user else None

    def is_one(about: dict[str, Any]) -> bool:
        # One that has ended, and that nobody has taken note of yet, has no command line.
        argv = about["cmdline"] or []
        is_users = uid in (None, about["uids"].effective)
        return is_users and all(any(word in one for one in argv) for word in words)

    return [one for one in psutil.process_iter(["uids", "cmdline"]) if is_one(one.info)]
