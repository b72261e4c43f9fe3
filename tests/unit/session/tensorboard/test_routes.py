"""What a session's TensorBoards do for the page, with files as they may be."""

import asyncio
import json
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application

from dsportal.session.tensorboard import routes as tensorboard
from dsportal.session.tensorboard.boards import Board
from dsportal.session.tensorboard.log_folders import FolderError
from dsportal.session.tensorboard.routes import (
    LookHandler,
    OpenHandler,
    TensorBoards,
    tensorboards,
)

EVENTS = "events.out.tfevents.1795275869.node001.26099.0"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    for folder in ("work/run", "empty"):
        (home / folder).mkdir(parents=True)
    (home / "work/run" / EVENTS).touch()
    return home


def empty(home: Path) -> TensorBoards:
    return tensorboards(sys.executable, 1, 0, home, home.parent, "/user/you/")


def test_somebody_who_is_near_curves_sees_them_and_else_the_folder_logs(home: Path) -> None:
    async def near(path: str) -> str:
        return await empty(home).near(path)

    assert asyncio.run(near("work")) == "work"
    assert not (home / "logs").exists()
    for path in ("", "empty", "away"):
        assert asyncio.run(near(path)) == "logs"
    assert (home / "logs").is_dir()


@pytest.mark.parametrize(("is_silent", "runs"), [(True, True), (False, False)])
def test_a_board_ends_with_its_folder_and_not_when_its_storage_is_slow(
    home: Path, monkeypatch: pytest.MonkeyPatch, is_silent: bool, runs: bool
) -> None:
    is_back, boards = threading.Event(), empty(home)
    board = Board("work", home / "work", boards.boards._kit)
    boards.boards._boards[board.id] = board

    def folder_at(home: Path, path: str) -> Path:
        if not is_silent:
            raise FolderError("It is gone.")
        is_back.wait(60)
        return home / path

    if is_silent:
        monkeypatch.setattr(tensorboard, "_FILE_SECONDS", 0.05)
    monkeypatch.setattr(tensorboard, "folder_at", folder_at)

    async def check() -> None:
        with suppress(FolderError):
            await boards.check(board.id)

    asyncio.run(check())
    is_back.set()
    assert (boards.boards.find(board.id) is board) is runs


def test_a_file_in_the_place_of_logs_is_said_in_words(home: Path) -> None:
    (home / "logs").touch()
    with pytest.raises(FolderError, match="~/logs cannot be opened: File exists"):
        asyncio.run(empty(home).near(""))


def test_a_file_server_that_is_away_is_said_in_words_and_holds_nothing_up(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_back = threading.Event()
    monkeypatch.setattr(tensorboard, "_FILE_SECONDS", 0.05)
    monkeypatch.setattr(tensorboard, "folder_at", lambda home, path: is_back.wait(60))

    async def ask() -> str:
        for _ in range(20):
            with pytest.raises(
                FolderError, match="The storage that holds ~/isilon is not responding"
            ):
                await empty(home).has_events("isilon")
        # The threads of others are free.
        return await asyncio.wait_for(asyncio.to_thread(lambda: "works"), 10)

    try:
        assert asyncio.run(ask()) == "works"
    finally:
        is_back.set()


class BareLook(LookHandler):
    """Asks nobody who asks."""

    async def prepare(self, *_: Any) -> None:  # type: ignore[override]
        self.current_user = "ann"


class BareOpen(OpenHandler):
    """Says which folder it would open."""

    async def prepare(self, *_: Any) -> None:  # type: ignore[override]
        self.current_user = "ann"

    async def get(self) -> None:
        self.finish(json.dumps(await self._path()))


async def asked(home: Path, *addresses: str) -> list[Any]:
    """Ask a server for each of these."""
    given = {"tensorboards": empty(home)}
    handlers: Any = [("/look", BareLook, given), ("/open", BareOpen, given)]
    server = HTTPServer(Application(handlers, base_url="/", headers={}))
    socket, port = bind_unused_port()
    server.add_socket(socket)
    try:
        answers = [
            await AsyncHTTPClient().fetch(f"http://127.0.0.1:{port}/{address}")
            for address in addresses
        ]
    finally:
        server.stop()
    return [json.loads(answer.body) for answer in answers]


def test_a_folder_whose_name_ends_with_a_blank_is_not_another(home: Path) -> None:
    (home / "work ").mkdir()
    (home / "work " / EVENTS).touch()
    (home / "empty ").mkdir()
    addresses = ("look?folder=empty%20", "look?folder=work%20", "open?folder=work%20")
    assert asyncio.run(asked(home, *addresses, "open?near=work%20")) == [
        {"has_events": False},
        {"has_events": True},
        "work ",
        "work ",
    ]
