"""Download of a folder: one ZIP file that is made while it is sent.

``GET /portal/folders/PATH`` sends it. Nothing of it is written to disk; in memory are a piece at a
time, and the list of names. What is hidden is left out, as in the file browser. What is left out
besides is named in the ZIP file itself, in `LEFT_OUT`: links, which may lead to all of a file
server; other file systems, whose server may not answer; what is no file; what cannot be read; names
that are no text; and what is beyond `MOST`.

jupyter-archive 3.5 refuses the Python of Debian 12 (3.11.2), whose tarfile cannot unpack safely.
"""

import logging
import os
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from io import RawIOBase
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from jupyter_server.base.handlers import JupyterHandler, path_regex
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.iostream import StreamClosedError

from dsportal.session.files.mounts import mounted_now
from dsportal.session.files.names import is_name
from dsportal.session.files.regular import open_regular
from dsportal.session.threads import in_thread

log = logging.getLogger(__name__)

LEFT_OUT = "LEFT-OUT.txt"
MOST = 200_000
"""Files and folders. zipfile keeps some 350 bytes of each until the end."""
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class FolderEntry:
    """An entry of the ZIP file, by its path below the folder."""

    path: PurePosixPath
    reason: str = ""
    """Why it is left out; empty: it is not."""
    is_folder: bool = False


def found_in(folder: Path, mounted: Collection[str] = ()) -> Iterator[FolderEntry]:
    """Find all that is not hidden, folders before what is in them.

    ``mounted``: where other file systems are; these are not touched.
    """
    waiting = [PurePosixPath()]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(folder / place) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield FolderEntry(place, _reason(error), is_folder=True)
            continue
        for entry in listed:
            path = place / entry.name
            if entry.name.startswith("."):
                continue
            if not is_name(entry.name):
                yield FolderEntry(path, "its name is not UTF-8")
            elif str(folder / path) in mounted:
                yield FolderEntry(path, "another file system")
            else:
                found = _found(path, entry)
                if found.is_folder:
                    waiting.append(path)
                yield found


def _found(path: PurePosixPath, entry: os.DirEntry[str]) -> FolderEntry:
    try:
        if entry.is_symlink():
            return FolderEntry(path, "a link")
        if entry.is_dir(follow_symlinks=False):
            return FolderEntry(path, is_folder=True)
        return FolderEntry(path, "" if entry.is_file(follow_symlinks=False) else "not a file")
    except OSError as error:
        # NFS need not say with the names what they are, and may refuse to.
        return FolderEntry(path, _reason(error))


class _Sink(RawIOBase):
    """Takes what zipfile writes, which cannot go back in it."""

    def __init__(self) -> None:
        self._taken = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._taken += data
        return len(data)

    def __len__(self) -> int:
        return len(self._taken)

    def take(self) -> bytes:
        """Give what has been written since the last time."""
        taken = bytes(self._taken)
        self._taken.clear()
        return taken


def zipped(folder: Path, most: int = MOST) -> Iterator[bytes]:
    """Give the ZIP file of a folder, piece by piece; no piece is empty.

    Raises:
        OSError: a file could be opened, but not read to its end.

    """
    top, left_out, sink = PurePosixPath(folder.name), [], _Sink()
    # A link to it may lead to it, and mounts are known by where they are.
    folder = folder.resolve()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, found in enumerate(found_in(folder, mounted_now().keys())):
            if number == most:
                left_out.append(f"all after the first {most} files and folders\n")
                break
            name, reason = str(top / found.path), found.reason
            try:
                if not reason and found.is_folder:
                    archive.writestr(_described(folder / found.path, name), b"")
                elif not reason:
                    opened, status = open_regular(folder / found.path)
            except OSError as error:
                reason = _reason(error)
            if reason:
                left_out.append(f"{name}: {reason}\n")
            elif not found.is_folder:
                with os.fdopen(opened, "rb") as file:
                    described = _described(opened, name)
                    described.compress_type = zipfile.ZIP_DEFLATED
                    left = status.st_size  # a log may grow faster than it is sent
                    with archive.open(described, "w") as target:
                        while data := file.read(min(_PIECE_BYTES, left)):
                            target.write(data)
                            left -= len(data)
                            if len(sink) >= _PIECE_BYTES:
                                yield sink.take()
            if len(sink) >= _PIECE_BYTES:
                yield sink.take()
        if left_out:
            said = "".join(left_out).encode(errors="replace")
            archive.writestr(_unused(archive, top), said)
    yield sink.take()


def _described(place: Any, name: str) -> zipfile.ZipInfo:
    """Describe a folder, by its path, or a file, by its descriptor."""
    # A time that ZIP does not know becomes the nearest that it knows.
    return zipfile.ZipInfo.from_file(place, name, strict_timestamps=False)


def _unused(archive: zipfile.ZipFile, top: PurePosixPath) -> str:
    name, number = LEFT_OUT, 1
    while str(top / name) in archive.NameToInfo:
        number += 1
        name = f"{number}-{LEFT_OUT}"
    return str(top / name)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


class FolderHandler(JupyterHandler):
    """GET handler that sends a folder as a ZIP file."""

    @web.authenticated
    async def get(self, path: str) -> None:
        """Send it as a ZIP file."""
        # As Jupyter's own downloads: asked for by this site's pages only.
        self.check_xsrf_cookie()
        contents: Any = self.contents_manager
        place = contents.place(path)
        if not await contents.is_shown(path, is_folder=True):
            raise web.HTTPError(404, f"There is no folder {path.strip('/')}")
        self.set_header("Content-Type", "application/zip")
        self.set_header("Cache-Control", "no-store")
        name = quote(os.path.basename(place))
        self.set_header("Content-Disposition", f"attachment; filename*=UTF-8''{name}.zip")
        pieces: Any = zipped(Path(place))
        following = partial(next, pieces, b"")
        try:
            while piece := await contents.in_time(following, place, repeat=False):
                self.write(piece)
                # Waits for who receives it.
                await self.flush()
        except StreamClosedError:
            pass  # who received it has gone
        except Exception as error:
            if not self._headers_written:
                raise
            log.warning("The download of the folder %s broke off: %s", place, error)
            # The end that tornado writes would make half a ZIP file look whole.
            connection: Any = self.request.connection
            connection.stream.close()
            self._auto_finish = False
        finally:
            # Not here: closing a file may wait for its server, too.
            in_thread(pieces.close)


def routes(base_url: str) -> list[tuple[str, type[JupyterHandler]]]:
    """Give the server's routes."""
    return [(url_path_join(base_url, "portal/folders") + path_regex, FolderHandler)]
