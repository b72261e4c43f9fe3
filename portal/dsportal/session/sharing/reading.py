"""A share as its reader's session opens it. Whatever is there, its owner may have put there."""

import os
import pwd
import re
from dataclasses import dataclass

from dsportal.session.files.regular import open_regular
from dsportal.session.sharing import words
from dsportal.session.sharing.access import SharingError
from dsportal.session.sharing.shares import MAX_BYTES

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}", re.ASCII)


@dataclass(frozen=True)
class Shared:
    """A shared notebook, as its reader gets it."""

    owner: str
    name: str
    content: bytes
    at: int
    """When, in seconds since 1970."""


def folder_of(setting: str, user: str) -> str:
    """Return a user's folder of shares, as ``session.shares_folder`` has it.

    >>> folder_of("/mnt/isilon/users/{user}/shared", "ann")
    '/mnt/isilon/users/ann/shared'
    """
    return setting.replace("{user}", user)


def place_of(setting: str, owner: str, share: str, name: str) -> str:
    """Return where a share's notebook lies; raises `SharingError` for names that no share has."""
    # Another file would be copied into the reader's home, where kernels import what lies there.
    is_notebook = name.endswith(".ipynb") and not name.startswith(".")
    if not _USER.fullmatch(owner) or not is_notebook or "/" in name or "\0" in name:
        raise SharingError(words.NOT_FOR_YOU.format(owner=owner))
    return f"{folder_of(setting, owner)}/{share}/{name}"


def read(place: str, owner: str) -> Shared:
    """Read a share with the reader's own rights; raises `SharingError`.

    The file must be its owner's own: a link on the way would show what the reader alone may see, as
    if the owner shared it.
    """
    refusal = SharingError(words.NOT_FOR_YOU.format(owner=owner))
    try:
        uid = pwd.getpwnam(owner).pw_uid
        file, told = open_regular(place)
    except (KeyError, OSError, ValueError) as error:
        raise refusal from error
    if told.st_uid != uid or told.st_size > MAX_BYTES:
        os.close(file)
        raise refusal
    with os.fdopen(file, "rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise refusal
    return Shared(owner, place.rpartition("/")[2], content, round(told.st_mtime))
