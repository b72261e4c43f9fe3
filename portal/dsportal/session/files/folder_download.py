"""Download of a folder: one ZIP file that is made while it is sent.

``GET /portal/folders/PATH`` sends it. Nothing of it is written to disk, and a piece at a time is in
memory. What is hidden is left out, as in the file browser. What is left out besides is named in the
ZIP file itself, in `LEFT_OUT`: links, which may lead to all of a file server, what is no file, what
cannot be read, and names that are no text.

jupyter-archive 3.5 refuses the Python of Debian 12 (3.11.2), whose tarfile cannot unpack safely.
"""

import os
import stat
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from io import RawIOBase
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from jupyter_server.base.handlers import JupyterHandler, path_regex
from jupyter_server.utils import ensure_async, url_path_join
from tornado import web

from dsportal.session.files.names import is_name

LEFT_OUT = "LEFT-OUT.txt"
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class FolderEntry:
    """What is in a folder, by its path below that."""

    path: PurePosixPath
    reason: str = ""
    """Why it is left out; empty: it is not."""
    is_folder: bool = False


def found_in(folder: Path) -> Iterator[FolderEntry]:
    """Find all that is not hidden, folders before what is in them."""
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
            elif entry.is_symlink():
                yield FolderEntry(path, "a link")
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(path)
                yield FolderEntry(path, is_folder=True)
            elif entry.is_file(follow_symlinks=False):
                yield FolderEntry(path)
            else:
                yield FolderEntry(path, "not a file")


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


def zipped(folder: Path) -> Iterator[bytes]:
    """Give the ZIP file of a folder, piece by piece; no piece is empty.

    Raises:
        OSError: a file could be opened, but not read to its end.

    """
    sink, left_out = _Sink(), []
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for found in found_in(folder):
            name = str(PurePosixPath(folder.name) / found.path)
            reason = found.reason
            if not reason and found.is_folder:
                archive.writestr(zipfile.ZipInfo(f"{name}/"), b"")
            elif not reason:
                try:
                    file = _opened(folder / found.path)
                except OSError as error:
                    reason = _reason(error)
                else:
                    with file, archive.open(_described(file, name), "w") as target:
                        while data := file.read(_PIECE_BYTES):
                            target.write(data)
                            if len(sink) >= _PIECE_BYTES:
                                yield sink.take()
            if reason:
                left_out.append(f"{name}: {reason}\n")
            if len(sink) >= _PIECE_BYTES:
                yield sink.take()
        if left_out:
            told = str(PurePosixPath(folder.name) / LEFT_OUT)
            archive.writestr(told, "".join(left_out).encode(errors="replace"))
    yield sink.take()


def _opened(path: Path) -> Any:
    # What was a file a moment ago may be a pipe now, which would keep whoever opens it.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, "not a file")
    return file


def _described(file: Any, name: str) -> zipfile.ZipInfo:
    status = os.fstat(file.fileno())
    # ZIP knows no time before 1980.
    moment = max(time.localtime(status.st_mtime)[:6], (1980, 1, 1, 0, 0, 0))
    described = zipfile.ZipInfo(name, moment)
    described.external_attr = (status.st_mode & 0xFFFF) << 16
    described.file_size = status.st_size
    described.compress_type = zipfile.ZIP_DEFLATED
    return described


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


class FolderHandler(JupyterHandler):
    """Sends a folder."""

    @web.authenticated
    async def get(self, path: str) -> None:
        """Send it as a ZIP file."""
        # As Jupyter's own downloads: asked for by this site's pages only.
        self.check_xsrf_cookie()
        contents: Any = self.contents_manager
        place = contents.place(path)
        if not await ensure_async(contents.dir_exists(path)):
            raise web.HTTPError(404, f"There is no folder {path.strip('/')}")
        if await ensure_async(contents.is_hidden(path)) and not contents.allow_hidden:
            raise web.HTTPError(404, f"There is no folder {path.strip('/')}")
        name = os.path.basename(place)
        self.set_header("Content-Type", "application/zip")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Disposition", f"attachment; filename*=UTF-8''{quote(name)}.zip")
        pieces = zipped(Path(place))
        following = partial(next, pieces, b"")
        # Waits for who receives it; one that has gone ends it (StreamClosedError).
        while piece := await contents.in_time(following, place, repeat=False):
            self.write(piece)
            await self.flush()


def routes(base_url: str) -> list[tuple[str, type[JupyterHandler]]]:
    """Give the server's routes."""
    return [(url_path_join(base_url, "portal/folders") + path_regex, FolderHandler)]
