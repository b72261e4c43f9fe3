"""Permissions of what a user writes: the umask of terminals, kernels and saved files.

What is the session's own (its folder for sockets and connection files, its keys, its log) does not
rely on it: all of that is in folders that are made for the user alone.
"""

import re
from pathlib import Path

_LOGIN_DEFS = Path("/etc/login.defs")
_DEFAULT = 0o022
# login.defs(5), and what pam_umask(8) reads of an account's own entry.
_IN_FILE = re.compile(r"^[ \t]*UMASK[ \t]+([0-7]{1,4})[ \t]*$", re.MULTILINE)
_IN_GECOS = re.compile(r"(?:^|,)umask=([0-7]{1,4})(?=,|$)")


def users_umask(chosen: str, gecos: str, login_defs: Path = _LOGIN_DEFS) -> int:
    """Return what the site has chosen, else what a login on this node gives.

    That is pam_umask's: the account's own entry, then ``UMASK`` of login.defs, then 022. The user's
    own rights are never among what it takes away.

    >>> oct(users_umask("0027", ""))
    '0o27'
    """
    text = chosen or _first(_IN_GECOS, gecos) or _first(_IN_FILE, _read(login_defs))
    return int(text, 8) & 0o077 if text else _DEFAULT


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
