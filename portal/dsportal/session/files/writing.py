"""Writing where others may write: no link of theirs leads into another file of the user's."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from dsportal.session.files.own_folder import checkpoint_folder, is_ones_own

_MOST_LINKS = 40
"""From one to the next, as Linux follows them."""


def followed(file: Path) -> Path:
    """Follow links to what is none, unless one is there that somebody else has put there.

    Raises `PermissionError`: what is saved would go into another file of the user's.
    """
    for _ in range(_MOST_LINKS):
        if not file.is_symlink():
            return file
        if not is_ones_own(file.parent) and file.lstat().st_uid not in (0, os.geteuid()):
            raise PermissionError(errno.EPERM, "a link of another user's", str(file))
        file = file.parent / file.readlink()
    raise PermissionError(errno.EPERM, "too many links", str(file))


@contextmanager
def writing(
    file: Path, text: bool = True, encoding: str = "utf-8", is_more: bool = False, **_: Any
) -> Iterator[Any]:
    """Write a file where others may write; a link that comes there meanwhile is not followed.

    ``is_more``: behind what is in it.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    flags |= os.O_APPEND if is_more else os.O_TRUNC
    how: Any = {"mode": "w", "encoding": encoding, "newline": "\n"} if text else {"mode": "wb"}
    with open(os.open(file, flags, 0o666), **how) as stream:
        yield stream


@contextmanager
def restored_on_failure(file: Path) -> Iterator[None]:
    """Give a file its content back where writing it fails; it is in the home meanwhile."""
    with ExitStack() as at_end:
        has_copy = False
        # A home without room keeps nobody from saving elsewhere.
        with suppress(OSError):
            copy = checkpoint_folder() / f"{uuid.uuid4().hex}.kept"
            at_end.callback(copy.unlink, missing_ok=True)
            shutil.copyfile(file, copy)
            has_copy = True
        try:
            yield
        except BaseException:
            if has_copy:
                # What made the writing fail is told, whatever this comes to.
                with (
                    suppress(OSError),
                    copy.open("rb") as kept,
                    writing(file, text=False) as place,
                ):
                    shutil.copyfileobj(kept, place)
            raise
