"""The shares of one user: made, listed, removed, with that user's rights."""

import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dsportal.session.files.regular import open_regular
from dsportal.session.sharing import words
from dsportal.session.sharing.access import Audience, Grant, SharingError

MAX_BYTES = 32 * 2**20
"""Of a shared notebook: whoever opens it has it in memory several times."""

_RECORD = ".share.json"
_VERSION = 1
"""Of the record: rises when this release would read a later one wrongly."""
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Share:
    """A shared notebook, as its owner sees it."""

    id: str
    path: str
    """Of the notebook that was copied: below the home."""
    name: str
    audience: Audience
    at: int
    """Seconds since 1970."""


class Shares:
    """Shares in a folder of the user's, which others may pass through but not list."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        """Take the folder; it is made with the first share."""
        self._folder, self._now = folder, now

    def all(self) -> list[Share]:
        """List them, the last first."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        found = [self._read(name) for name in names if _ID.fullmatch(name)]
        return sorted((one for one in found if one), key=lambda one: (-one.at, one.id))

    def add(self, path: str, content: bytes, audience: Audience) -> Share:
        """Share a notebook's content; raises `SharingError`.

        Nobody can read any of it before all of it is there.
        """
        grant = Grant(audience)
        share = Share(
            id=secrets.token_hex(16),
            path=path,
            name=path.rpartition("/")[2],
            audience=audience,
            at=round(self._now()),
        )
        try:
            self._make_folder()
            self._write(share, content, grant)
        except SharingError:
            self._forget(share.id)
            raise
        except OSError as error:
            self._forget(share.id)
            raise self._trouble(error) from error
        return share

    def remove(self, id: str) -> None:  # noqa: A002 - the word of the page
        """Stop sharing; raises `SharingError`."""
        if not _ID.fullmatch(id) or not (self._folder / id).is_dir():
            raise SharingError(words.NO_SHARE)
        try:
            shutil.rmtree(self._folder / id)
        except OSError as error:
            raise self._trouble(error) from error

    def _make_folder(self) -> None:
        if not self._folder.exists():
            self._folder.mkdir(mode=0o700)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK)
        try:
            if os.fstat(folder).st_uid != os.getuid():
                raise PermissionError(0, "it belongs to somebody else")
            # Who knows a name in it may go there; nobody else sees the names.
            if stat.S_IMODE(os.fstat(folder).st_mode) != 0o711:
                os.fchmod(folder, 0o711)
        finally:
            os.close(folder)

    def _write(self, share: Share, content: bytes, grant: Grant) -> None:
        place = self._folder / share.id
        place.mkdir(mode=0o700)
        record = {
            "version": _VERSION,
            "path": share.path,
            "name": share.name,
            "kind": share.audience.kind,
            "names": share.audience.names,
            "at": share.at,
        }
        for name, written in ((_RECORD, json.dumps(record).encode()), (share.name, content)):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
            with os.fdopen(os.open(place / name, flags, 0o600), "wb") as file:
                file.write(written)
                if name != _RECORD:
                    grant.give(file.fileno(), is_folder=False)
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK)
        try:
            grant.give(folder, is_folder=True)
        finally:
            os.close(folder)

    def _read(self, id: str) -> Share | None:  # noqa: A002
        try:
            told = json.loads((self._folder / id / _RECORD).read_bytes())
            if int(told.get("version", _VERSION)) > _VERSION:
                return None
            audience = Audience(str(told["kind"]), tuple(map(str, told["names"])))
            return Share(id, str(told["path"]), str(told["name"]), audience, int(told["at"]))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def _forget(self, id: str) -> None:  # noqa: A002
        shutil.rmtree(self._folder / id, ignore_errors=True)

    def _trouble(self, error: OSError) -> SharingError:
        reason = error.strerror or str(error)
        return SharingError(words.NO_FOLDER.format(folder=self._folder, reason=reason))


def notebook_at(place: str, path: str) -> bytes:
    """Read the notebook that is to be shared; raises `SharingError`."""
    name = path.rpartition("/")[2]
    if not name.endswith(".ipynb") or name.startswith("."):
        raise SharingError(words.NO_NOTEBOOK.format(path=path))
    try:
        opened, _ = open_regular(_own_link(place))
        with os.fdopen(opened, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SharingError(words.NOT_READ.format(path=path, reason=error.strerror)) from error
    if len(content) > MAX_BYTES:
        raise SharingError(words.TOO_LARGE.format(name=name, limit_mib=MAX_BYTES // 2**20))
    return content


def _own_link(place: str) -> str:
    """Follow a link of the user's; one that somebody else has put there is not opened.

    In a folder that others may write to, it would have the user share another file of theirs.
    """
    is_own = os.path.islink(place) and os.lstat(place).st_uid == os.geteuid()
    return os.path.realpath(place) if is_own else place
