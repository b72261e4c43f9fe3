"""Routes for TensorBoard on any folder of the file browser, behind the session's login.

``GET /tensorboard/?folder=PATH`` opens that of a folder: it leads to the board's own address,
``/tensorboard/ID/``, which `proxy` serves. ``?near=PATH`` stands for that folder if
there is something to show in it, else for ``~/logs``; so does no argument at all. Paths are those
of Jupyter's contents: below the home, with ``/``.

For the page: ``GET /portal/tensorboard`` lists the boards that run, ``DELETE
/portal/tensorboard/ID`` stops one, ``GET /portal/tensorboard/look?folder=PATH`` says whether a
folder has something to show.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from dsportal.session.tensorboard import words
from dsportal.session.tensorboard.boards import Board, BoardError, Boards, Kit
from dsportal.session.tensorboard.log_folders import (
    FolderError,
    SilentFilesError,
    folder_at,
    has_events,
    shown,
)
from dsportal.session.threads import in_thread
from dsportal.session.web.confirmation import ask, is_from_elsewhere
from dsportal.session.web.page_files import page_of

T = TypeVar("T")

NAME = "tensorboard"
BOARDS = rf"{NAME}/[0-9a-f]{{12}}/.*"
"""Their addresses below the server's, as a regular expression."""
DEFAULT_FOLDER = "logs"
"""Where the templates write their curves."""

_PAGE = Path(__file__).with_name("words.html.j2")
_FILE_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = 5


def tensorboards(
    python: str, most: int, idle_minutes: float, home: Path, runtime_folder: Path, base_url: str
) -> "TensorBoards":
    """Make a session's, empty: at most so many at once, by this interpreter.

    ``idle_minutes``: when one sleeps that nobody looks at; 0 for never. Only the user can enter the
    runtime folder.
    """
    kit = Kit(
        python=python,
        runtime_folder=runtime_folder,
        address=url_path_join(base_url, NAME) + "/",
        most=most,
        idle_seconds=60 * idle_minutes or None,
    )
    return TensorBoards(home, Boards(kit))


class TensorBoards:
    """The session's boards, and the home that holds their folders."""

    def __init__(self, home: Path, boards: Boards) -> None:
        self._home, self.boards = home, boards

    async def open(self, path: str) -> Board:
        """Return a folder's board, awake; raises `FolderError` and `BoardError`."""
        return await self.boards.open(path, await self._folder(path))

    async def check(self, board_id: str) -> None:
        """Stop a board whose folder has gone; raises `FolderError` then."""
        board = self.boards.find(board_id)
        if board is None:
            return
        try:
            await self._folder(board.name)
        except SilentFilesError:
            return  # it shows what it has read, and reads on when the storage responds
        except FolderError:
            await self.boards.stop(board_id)
            raise

    async def is_empty(self, path: str) -> bool:
        """Say whether a folder surely has nothing to show; raises `FolderError`."""
        return await self.has_events(path) is False

    async def has_events(self, path: str) -> bool | None:
        """Say whether a folder has something to show; raises `FolderError`."""
        return await _soon(lambda: has_events(folder_at(self._home, path)), path)

    async def near(self, path: str) -> str:
        """Choose the folder for somebody who is in one, and names none."""
        try:
            if path and await self.has_events(path):
                return path
        except FolderError:
            pass  # what is shown instead needs no excuse
        await _soon(lambda: (self._home / DEFAULT_FOLDER).mkdir(exist_ok=True), DEFAULT_FOLDER)
        return DEFAULT_FOLDER

    async def _folder(self, path: str) -> Path:
        return await _soon(lambda: folder_at(self._home, path), path)


async def _soon(ask: Callable[[], T], path: str) -> T:
    """Ask about files: a file server that is away must not hold up what else the session does."""
    try:
        return await asyncio.wait_for(in_thread(ask), _FILE_SECONDS)
    except TimeoutError as error:
        raise SilentFilesError(words.silent_files(shown(path))) from error
    except OSError as error:
        raise FolderError(words.cannot_be_opened(shown(path), error.strerror)) from error


def finish_with_words(handler: JupyterHandler, status: int, **parts: Any) -> None:
    """Answer with a page of ours: ``title`` and ``text``, and what else it takes."""
    handler.set_status(status)
    handler.set_header("Cache-Control", "no-store")
    handler.finish(page_of(_PAGE).render(**parts))


class OpenHandler(JupyterHandler):
    """Opens the board of a folder."""

    def initialize(self, tensorboards: TensorBoards) -> None:
        """Take the session's boards."""
        self._tensorboards = tensorboards

    @web.authenticated
    async def get(self) -> None:
        """Lead to it, or say why there is none."""
        try:
            path = await self._path()
            if is_from_elsewhere(self):
                title = words.question(shown(path))
                action = f"?folder={quote(path)}"
                ask(self, title=title, label="Open TensorBoard", action=action)
            elif not self.get_query_argument("anyway", "") and await self._tensorboards.is_empty(
                path
            ):
                self._wait(path)
            else:
                board = await self._tensorboards.open(path)
                self.redirect(board.address)
        except FolderError as error:
            finish_with_words(self, 404, title=words.NO_FOLDER, text=str(error))
        except BoardError as error:
            finish_with_words(self, 503, title=words.NOT_OPENED, text=str(error))

    @web.authenticated
    async def post(self) -> None:
        """Lead there whoever was asked."""
        path = quote(await self._path())
        self.redirect(f"{url_path_join(self.base_url, NAME)}/?folder={path}", status=303)

    async def _path(self) -> str:
        # A folder's name may begin or end with a blank.
        named = self.get_query_argument("folder", None, strip=False)
        if named is not None:
            return named.strip("/")
        near = self.get_query_argument("near", "", strip=False)
        return await self._tensorboards.near(near.strip("/"))

    def _wait(self, path: str) -> None:
        finish_with_words(
            self,
            200,
            title=words.no_curves(shown(path)),
            text=words.NO_EVENTS,
            link=f"?folder={quote(path)}&anyway=1",
            label="Open TensorBoard now",
            look_again_seconds=_LOOK_AGAIN_SECONDS,
        )


class _PageHandler(APIHandler):
    # A page asks by itself: no sign that somebody works.
    _track_activity = False

    def initialize(self, tensorboards: TensorBoards) -> None:
        """Take the session's boards."""
        self.tensorboards = tensorboards

    def finish_with_list(self) -> None:
        """Answer with the boards that run."""
        listed = [
            {
                "id": board.id,
                "folder": board.name,
                "place": str(board.folder),
                "address": board.address,
            }
            for board in self.tensorboards.boards.awake()
        ]
        self.finish(json.dumps({"boards": listed}))


class ListHandler(_PageHandler):
    """Lists the boards that run."""

    @web.authenticated
    async def get(self) -> None:
        """Give the list."""
        self.finish_with_list()


class BoardHandler(_PageHandler):
    """DELETE handler that stops a board."""

    @web.authenticated
    async def delete(self, board_id: str) -> None:
        """Stop it, and give the list of those that are left."""
        if not await self.tensorboards.boards.stop(board_id):
            raise web.HTTPError(404, words.ALREADY_STOPPED)
        self.finish_with_list()


class LookHandler(_PageHandler):
    """Looks for event files."""

    @web.authenticated
    async def get(self) -> None:
        """Say whether a folder has something to show; ``null``: it is too large to tell."""
        try:
            folder = self.get_query_argument("folder", strip=False)
            found = await self.tensorboards.has_events(folder.strip("/"))
        except FolderError as error:
            raise web.HTTPError(404, str(error)) from error
        self.finish(json.dumps({"has_events": found}))


def routes(
    base_url: str, tensorboards: TensorBoards
) -> list[tuple[str, type[JupyterHandler], dict[str, Any]]]:
    """Give the server's routes, but for those of the boards themselves."""
    given = {"tensorboards": tensorboards}
    return [
        (url_path_join(base_url, f"{NAME}/?"), OpenHandler, given),
        (url_path_join(base_url, "portal/tensorboard"), ListHandler, given),
        (url_path_join(base_url, "portal/tensorboard/look"), LookHandler, given),
        (url_path_join(base_url, "portal/tensorboard/([0-9a-f]{12})"), BoardHandler, given),
    ]
