"""Credentials for a registry: where they come from, and how they get to skopeo.

It is never an argument, a variable or a file of ours: on its way to skopeo it is in memory that
has a descriptor and no name (memfd_create(2)), so nothing is left of it whatever happens.
"""

import base64
import getpass
import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dsportal.images.errors import ImageError

_LONGEST = 20_000


@dataclass(frozen=True)
class Key:
    """Credentials for a container registry."""

    user: str
    secret: str = field(repr=False)


def from_file(file: Path, user: str) -> Key:
    """Read it from a file that nobody else could have read."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ImageError(f"{file}: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as source:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ImageError(f"{file} is no ordinary file")
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ImageError(
                f"{file} can be read by others, or is not yours: chmod 600 {file}. If others could "
                "have read it, make a new key"
            )
        return _key(user, source.read(_LONGEST + 1), str(file))


def from_input(user: str) -> Key:
    """Read it from the standard input, as a notebook gives it."""
    return _key(user, sys.stdin.buffer.readline(_LONGEST + 1), "The standard input")


def from_terminal(registry: str, user: str) -> Key:
    """Ask for it; what is typed is not shown."""
    return _key(
        user, getpass.getpass(f"Key for {registry} (not shown): ").encode(), "What you typed"
    )


def _key(user: str, content: bytes, source: str) -> Key:
    secret = content.decode("utf-8", "replace").strip()
    if not secret or len(content) > _LONGEST or not secret.isprintable() or not secret.isascii():
        raise ImageError(f"{source} has no key: it must be one line of plain characters")
    return Key(user, secret)


@contextmanager
def authfile(registry: str, key: Key | None) -> Iterator[int]:
    """Give a descriptor whose content is what containers-auth.json(5) describes."""
    auths = {}
    if key is not None:
        pair = f"{key.user}:{key.secret}".encode()
        auths = {registry: {"auth": base64.b64encode(pair).decode()}}
    descriptor = os.memfd_create("authfile")
    try:
        os.write(descriptor, json.dumps({"auths": auths}).encode())
        yield descriptor
    finally:
        os.close(descriptor)
