"""Jupyter's contents manager, which one unresponsive file server does not hold up.

Jupyter asks about files in the thread that serves everybody: one listing of a home with a link to a
dead mount would stop the whole session. Here each call has a thread of its own (``threads``), and
what leads to a dead mount is refused, with words that name it (``mounts``).
"""

import functools
import os
import re
import shutil
import sys
import threading
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from jupyter_server.services.contents.largefilemanager import LargeFileManager
from tornado import web
from tornado.ioloop import IOLoop
from traitlets import default

from dsportal.session.files.mounts import Mounts, NoAnswer
from dsportal.session.files.names import check
from dsportal.session.files.own_folder import is_ones_own
from dsportal.session.files.signatures import Notary
from dsportal.session.files.writing import followed, restored_on_failure, writing

T = TypeVar("T")

# What changes nothing, and may therefore be begun anew.
_READS = (
    *("get", "dir_exists", "file_exists", "exists", "is_hidden", "resolve_path"),
    *("get_kernel_path", "increment_filename", "list_checkpoints"),
)
_CHANGES = (
    *("save", "delete", "delete_file", "rename", "rename_file", "update", "new", "new_untitled"),
    *("copy", "trust_notebook", "create_checkpoint", "restore_checkpoint", "delete_checkpoint"),
)

_NAMES = frozenset({"path", "name", "type", "format", "ext", "mimetype"})
"""Of the keys of a file's model."""

_BYTES_OF_A_PART = 600
"""In memory, of a notebook's object or list: 545 MB for a million of ``{}`` (nbformat 5.11)."""

_PART = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|([{\[])', re.DOTALL)
"""Of JSON: a text, whose end may be missing, or (the group) where an object or a list begins."""

_WITH_A_MODEL = ("save", "update", "new")


def _decoded(content: str, form: str) -> bytes:
    """Read a piece of an upload as Jupyter does; raises `web.HTTPError` (400)."""
    if form not in ("text", "base64"):
        raise web.HTTPError(400, "format must be text or base64.")
    try:
        return content.encode() if form == "text" else b64decode(content)
    except ValueError as error:
        raise web.HTTPError(400, f"content cannot be read: {error}.") from error


class _Files(LargeFileManager):
    """The contents as a thread sees them; a link to a dead mount is a folder that says nothing."""

    mounts: Mounts = Mounts()
    loop: IOLoop | None = None
    """Where events and the signatures of notebooks are at home; SQLite's connections are bound."""
    longest_bytes: int = sys.maxsize
    """Of a file that is opened; one that is longer could not be saved again."""
    memory_bytes: int = sys.maxsize
    """What an opened file may have of the session's memory, where it is several times."""
    _silent = threading.local()
    _copied = threading.local()

    @default("notary")
    def _our_notary(self) -> Notary:
        return Notary(parent=self)  # type: ignore[no-untyped-call]

    def get(self, path: str, content: bool = True, *asked: Any, **named: Any) -> Any:
        """Describe a file or folder."""
        if not content and self.mounts.trouble_on(self.place(path)):
            return self._unavailable(path)
        return super().get(path, content, *asked, **named)  # type: ignore[no-untyped-call]

    def save(self, model: dict[str, Any], path: str = "") -> Any:
        """Save a file, or make a folder; in one that is there."""
        folder = path.strip("/").rpartition("/")[0]
        if not os.path.isdir(self.place(folder)):
            raise web.HTTPError(404, f"There is no folder {folder}")
        return super().save(model, path)  # type: ignore[no-untyped-call]

    def copy(self, from_path: str, to_path: str | None = None) -> Any:
        """Copy a file of whatever size: upstream reads it whole, and then writes that."""
        source = self._get_os_path(from_path.strip("/"))  # type: ignore[no-untyped-call]
        if from_path.endswith(".ipynb") or not os.path.isfile(source):
            return super().copy(from_path, to_path)  # type: ignore[no-untyped-call]
        self._copied.source = source
        try:
            return super().copy(from_path, to_path)  # type: ignore[no-untyped-call]
        finally:
            self._copied.source = None

    def _read_file(self, os_path: str, *asked: Any, **named: Any) -> Any:
        if getattr(self._copied, "source", None) == os_path:
            return "", "text", b""  # its content goes another way, in `_save_file`
        _refuse_longer(os_path, min(self.longest_bytes, self.memory_bytes))
        return super()._read_file(os_path, *asked, **named)

    def _read_notebook(self, os_path: str, *asked: Any, **named: Any) -> Any:
        # What is no JSON is written out once more in the error, each byte as four letters.
        _refuse_longer(os_path, min(self.longest_bytes, self.memory_bytes // 2))
        if (
            self.memory_bytes < sys.maxsize
            and _parts(os_path) * _BYTES_OF_A_PART > self.memory_bytes
        ):
            name = os.path.basename(os_path)
            raise web.HTTPError(
                413,
                f"{name} has too many parts for the memory of this session. Open it in a session "
                "with more.",
            )
        return super()._read_notebook(os_path, *asked, **named)

    def _save_file(self, os_path: str, content: Any, format: Any) -> None:  # noqa: A002
        source = getattr(self._copied, "source", None)
        if source is None:
            super()._save_file(os_path, content, format)  # type: ignore[no-untyped-call]
            return
        with self.open(source, "rb") as old, self.atomic_writing(os_path, text=False) as new:
            shutil.copyfileobj(old, new)

    @contextmanager
    def atomic_writing(self, os_path: str, *asked: Any, **named: Any) -> Iterator[Any]:
        """Write a file, whose old content comes back where that fails.

        Jupyter keeps it beside the file meanwhile; in a folder that others may write to, a link
        could stand there, and lead it to another file of the user's.
        """
        with self.perm_to_403(os_path):
            file = followed(Path(os_path))
            if is_ones_own(file.parent):
                with super().atomic_writing(str(file), *asked, **named) as stream:
                    yield stream
                return
            with restored_on_failure(file), writing(file, *asked, **named) as stream:
                yield stream

    def _save_large_file(self, os_path: str, content: Any, format: Any) -> None:  # noqa: A002
        with self.perm_to_403(os_path):
            file = followed(Path(os_path))
            if not is_ones_own(file.parent):
                # Jupyter would look for a link once more, and follow it.
                with writing(file, text=False, is_more=True) as stream:
                    stream.write(_decoded(content, format))
                return
        super()._save_large_file(str(file), content, format)  # type: ignore[no-untyped-call]

    def _dir_model(self, path: str, content: bool = True) -> Any:
        if not content:
            return super()._dir_model(path, content)  # type: ignore[no-untyped-call]
        # Jupyter looks where a link leads to already to find out whether it is hidden.
        self._silent.names = names = self._silent_links(path)
        model = super()._dir_model(path, content)  # type: ignore[no-untyped-call]
        model["content"] += [self._unavailable(f"{path}/{name}") for name in sorted(names)]
        return model

    def should_list(self, name: str) -> bool:
        """Say whether an entry of the folder that this thread lists is looked at."""
        silent: frozenset[str] = getattr(self._silent, "names", frozenset())
        return name not in silent and bool(super().should_list(name))  # type: ignore[no-untyped-call]

    def _silent_links(self, path: str) -> frozenset[str]:
        if not self.mounts.dead():
            return frozenset()
        with suppress(OSError), os.scandir(self.place(path)) as entries:
            links = [entry for entry in entries if entry.is_symlink()]
            return frozenset(link.name for link in links if self.mounts.trouble_on(link.path))
        return frozenset()

    def place(self, path: str) -> str:
        """Return where a path of contents is, without looking at it."""
        return os.path.normpath(os.path.join(self.root_dir, path.strip("/")))

    def emit(self, data: Any) -> None:
        """Tell of a change, from the server's own thread."""
        self._at_home(super().emit, data)

    def mark_trusted_cells(self, nb: Any, path: str = "") -> None:
        """Ask for the notebook's signature."""
        self._at_home(super().mark_trusted_cells, nb, path)

    def check_and_sign(self, nb: Any, path: str = "", **more: Any) -> None:
        """Sign a notebook whose cells are trusted."""
        self._at_home(super().check_and_sign, nb, path, **more)

    def _at_home(self, call: Callable[..., None], *given: Any, **more: Any) -> None:
        if threading.current_thread() is threading.main_thread() or self.loop is None:
            call(*given, **more)
            return
        done: Future[None] = Future()

        def do() -> None:
            try:
                call(*given, **more)
                done.set_result(None)
            except Exception as error:  # noqa: BLE001 - raised in the thread that asked
                done.set_exception(error)

        self.loop.add_callback(do)
        done.result()

    def _unavailable(self, path: str) -> dict[str, Any]:
        name = path.strip("/").rpartition("/")[2]
        try:
            moment = datetime.fromtimestamp(os.lstat(self.place(path)).st_mtime, UTC)
        except OSError:
            moment = datetime.fromtimestamp(0, UTC)
        nothing = dict.fromkeys(
            ("content", "format", "mimetype", "size", "hash", "hash_algorithm"), None
        )
        return {
            **nothing,
            "name": name,
            "path": path.strip("/"),
            "type": "directory",
            "created": moment,
            "last_modified": moment,
            "writable": False,
        }


def _parts(os_path: str) -> int:
    """Count the objects and lists of a notebook, but not such letters in its texts."""
    if not os.path.isfile(os_path):
        return 0  # Jupyter says so
    with open(os_path, "rb") as file:
        return sum(one.lastindex is not None for one in _PART.finditer(file.read()))


def _refuse_longer(os_path: str, most: int) -> None:
    if os.path.isfile(os_path) and os.stat(os_path).st_size > most:
        name = os.path.basename(os_path)
        raise web.HTTPError(
            413,
            f"{name} is larger than {most >> 20} MiB, too large to be opened in this session. "
            "Read it in a notebook, a part at a time.",
        )


class SessionContents(_Files):
    """The contents as the server sees them: what is asked in its thread is an awaitable."""

    async def in_time(self, work: Callable[[], T], *places: str, repeat: bool = True) -> T:
        """Do what touches these places, or answer that they cannot be had."""
        try:
            return await self.mounts.in_time(work, *places, repeat=repeat)
        except NoAnswer as error:
            # Not 503, which JupyterLab takes for the end of the session.
            raise web.HTTPError(504, str(error)) from error

    async def is_shown(self, path: str, *, is_folder: bool) -> bool:
        """Say whether there is such a folder, or file, that is not hidden from the page."""
        exists: Any = self.dir_exists if is_folder else self.file_exists
        hidden: Any = self.is_hidden
        return bool(await exists(path) and (self.allow_hidden or not await hidden(path)))

    async def look_at(self, place: str) -> None:
        """Look at a place, so that who goes there afterwards does not wait."""
        await self.in_time(functools.partial(os.path.exists, place), place)


def _paths(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[str, ...]:
    values = (*given, *(value for name, value in named.items() if name.endswith("path")))
    return tuple(value for value in values if isinstance(value, str))


def _check(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Refuse what cannot be meant; raises `web.HTTPError`."""
    models = (*given, *named.values()) if name in _WITH_A_MODEL else ()
    for value in models:
        if isinstance(value, dict):
            for key in _NAMES & value.keys():
                check(key, value[key])
            if not isinstance(value.get("content"), str | dict | None):
                raise web.HTTPError(400, "content must be a string or a notebook.")
            if type(value.get("chunk", 0)) is not int:
                raise web.HTTPError(400, "chunk must be a whole number.")
            if "path" in value and value["path"] is None:
                raise web.HTTPError(400, "path must be a string.")
    names = [value for value in given if not (models and isinstance(value, dict))]
    for value in (*names, *(value for key, value in named.items() if key.endswith("path"))):
        check("A path or type", value)


def _off_the_loop(name: str, repeat: bool) -> Callable[..., Any]:
    inner = getattr(_Files, name)

    @functools.wraps(inner)
    def call(self: SessionContents, *given: Any, **named: Any) -> Any | Awaitable[Any]:
        work = functools.partial(inner, self, *given, **named)
        if threading.current_thread() is not threading.main_thread():
            return work()
        _check(name, given, named)
        return self.in_time(work, *map(self.place, _paths(given, named)), repeat=repeat)

    return call


for _name in (*_READS, *_CHANGES):
    setattr(SessionContents, _name, _off_the_loop(_name, _name in _READS))
