import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application

from dsportal.session.files.contents import SessionContents
from dsportal.session.files.mounts import Mounts, MountState
from dsportal.session.jobs import job_log, words
from dsportal.session.jobs.job_log import LogHandler, NoLog, decoded, read_piece, words_of
from dsportal.session.jobs.slurm import LogFiles


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "slurm-7.out"


def test_a_growing_file_is_read_on_from_where_it_was(log: Path) -> None:
    log.write_text("one\n")
    first = read_piece(log)
    assert (first.text, first.start, first.next, first.is_new) == ("one\n", 0, 4, True)
    with log.open("a") as file:
        file.write("two\n")
    second = read_piece(log, first.file, first.next)
    assert (second.text, second.start, second.next, second.is_new) == ("two\n", 4, 8, False)
    third = read_piece(log, second.file, second.next)
    assert (third.text, third.next, third.is_new) == ("", 8, False)


def test_a_large_file_begins_near_its_end_with_a_whole_line(log: Path) -> None:
    log.write_text("".join(f"line {number:06}\n" for number in range(100_000)))
    piece = read_piece(log)
    assert piece.text.startswith("line ")
    assert piece.text.endswith("line 099999\n")
    assert 60_000 < len(piece.text) <= 65_536
    assert piece.next == piece.size == log.stat().st_size
    assert log.read_bytes()[piece.start : piece.next].decode() == piece.text


def test_what_was_added_at_once_is_read_in_parts(log: Path) -> None:
    log.write_text("begin\n")
    piece = read_piece(log)
    with log.open("a") as file:
        file.write("x" * 1_000_000)
    sizes: list[int] = []
    while piece.next < piece.size or not sizes:
        piece = read_piece(log, piece.file, piece.next)
        sizes.append(len(piece.text))
    assert sizes == [262_144, 262_144, 262_144, 1_000_000 - 3 * 262_144]


def test_a_file_that_was_cut_short_is_read_anew(log: Path) -> None:
    log.write_text("a long first text\n")
    first = read_piece(log)
    log.write_text("short\n")
    second = read_piece(log, first.file, first.next)
    assert (second.text, second.is_new) == ("short\n", True)


def test_another_file_of_the_same_name_is_read_anew(log: Path, tmp_path: Path) -> None:
    log.write_text("old\n")
    first = read_piece(log)
    (tmp_path / "new").write_text("new, and longer\n")
    (tmp_path / "new").rename(log)
    second = read_piece(log, first.file, first.next)
    assert (second.text, second.is_new) == ("new, and longer\n", True)


def test_a_letter_that_is_written_in_two_goes_is_read_whole(log: Path) -> None:
    log.write_bytes(b"caf\xc3")
    first = read_piece(log)
    assert (first.text, first.next, first.size) == ("caf", 3, 4)
    log.write_bytes(b"caf\xc3\xa9\n")
    assert read_piece(log, first.file, first.next).text == "é\n"


def test_a_letter_that_an_ended_job_left_unfinished_does_not_keep_its_log_open(log: Path) -> None:
    log.write_bytes(b"caf\xc3")
    piece = read_piece(log, is_over=True)
    assert (piece.text, piece.next, piece.size) == ("caf\ufffd", 4, 4)


class Bare(LogHandler):
    """Asks nobody who asks."""

    async def prepare(self, *_: Any) -> None:  # type: ignore[override]
        self.current_user = "ann"


class EndedJob:
    """Stands in for what is known of the jobs: one has ended, and wrote to a file."""

    def __init__(self, file: Path) -> None:
        self.jobs, self._files = self, LogFiles(str(file), str(file))

    async def is_over(self, _: str) -> bool:
        return True

    async def files(self, _: str) -> LogFiles:
        return self._files


class OneIsDead(Mounts):
    """Knows of a mount that does not answer."""

    def __init__(self, point: Path) -> None:
        super().__init__()
        self._known[str(point)] = MountState(str(point), "hangs", 0.0)


def test_a_log_on_a_mount_that_does_not_answer_is_not_touched(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched: list[Path] = []
    monkeypatch.setattr(job_log, "read_piece", lambda path, *_, **__: touched.append(path))
    contents = SessionContents(root_dir=str(log.parent))
    contents.mounts = OneIsDead(log.parent)
    settings: dict[str, Any] = {"contents_manager": contents, "base_url": "/", "headers": {}}

    async def ask() -> HTTPClientError:
        given: Any = {"logs": EndedJob(log)}
        server = HTTPServer(Application([("/log", Bare, given)], **settings))
        socket, port = bind_unused_port()
        server.add_socket(socket)
        try:
            with pytest.raises(HTTPClientError) as refused:
                await AsyncHTTPClient().fetch(f"http://127.0.0.1:{port}/log?job=7")
        finally:
            server.stop()
        return refused.value

    assert asyncio.run(ask()).code == 504
    assert touched == []


def test_what_is_no_utf_8_is_shown_as_such() -> None:
    assert decoded(b"a\xff\xfeb") == ("a\ufffd\ufffdb", 0)


def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises((NoLog, OSError)):
            read_piece(path)


def test_a_file_that_is_not_there_yet_is_explained() -> None:
    assert words_of(FileNotFoundError(2, "no"), "/scratch/a") == words.no_file("/scratch/a")
    assert words_of(PermissionError(13, "Permission denied"), "/a") == (
        "/a cannot be read: Permission denied."
    )
