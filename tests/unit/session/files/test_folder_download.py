import asyncio
import errno
import io
import logging
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError
from tornado.httpserver import HTTPServer
from tornado.simple_httpclient import HTTPStreamClosedError
from tornado.testing import bind_unused_port
from tornado.web import Application

from dsportal.session.files import folder_download
from dsportal.session.files.contents import SessionContents
from dsportal.session.files.folder_download import LEFT_OUT, FolderHandler, found_in, zipped
from dsportal.session.files.regular import open_regular

OPENS = "dsportal.session.files.folder_download.open_regular"


def opened(folder: Path, **more: int) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(io.BytesIO(b"".join(zipped(folder, **more))))
    assert archive.testzip() is None
    return archive


def left_out(archive: zipfile.ZipFile) -> list[str]:
    return archive.read(f"mine/{LEFT_OUT}").decode().splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "deep" / "empty").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "deep" / "ü.bin").write_bytes(bytes(range(256)) * 10)
    return folder


def test_it_has_what_is_in_the_folder_with_modes_and_times(folder: Path) -> None:
    (folder / "run.sh").write_text("true")
    (folder / "run.sh").chmod(0o750)
    (folder / "deep").chmod(0o770)
    for name in ("run.sh", "deep"):
        os.utime(folder / name, (1_000_000_000, 1_000_000_000))
    archive = opened(folder)
    assert archive.namelist() == [
        "mine/a.txt", "mine/deep/", "mine/run.sh", "mine/deep/empty/", "mine/deep/ü.bin",
    ]  # fmt: skip
    assert archive.read("mine/deep/ü.bin") == (folder / "deep/ü.bin").read_bytes()
    for name, mode in (("run.sh", stat.S_IFREG | 0o750), ("deep/", stat.S_IFDIR | 0o770)):
        entry = archive.getinfo(f"mine/{name}")
        assert entry.external_attr >> 16 == mode
        assert entry.date_time[0] == 2001


def test_what_is_hidden_is_not_in_it(folder: Path) -> None:
    (folder / ".secret").write_text("s")
    (folder / "deep/.git").mkdir()
    (folder / "deep/.git/config").write_text("c")
    assert not [name for name in opened(folder).namelist() if "/." in name]


def test_what_is_left_out_is_named_with_the_reason(folder: Path) -> None:
    (folder / "link").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    (folder / os.fsdecode(b"\xff.txt")).write_text("x")
    archive = opened(folder)
    assert left_out(archive) == [
        "mine/link: a link",
        "mine/pipe: not a file",
        "mine/?.txt: its name is not UTF-8",
    ]
    assert "mine/link" not in archive.namelist()


def test_other_file_systems_are_not_touched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_download, "mounted_now", lambda: {str(folder / "deep"): "nfs4"})
    archive = opened(folder)
    assert archive.namelist() == ["mine/a.txt", f"mine/{LEFT_OUT}"]
    assert left_out(archive) == ["mine/deep: another file system"]


def test_a_link_to_a_folder_can_be_chosen_itself(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "chosen").symlink_to(folder)
    assert "chosen/a.txt" in opened(tmp_path / "chosen").namelist()


def test_a_file_that_cannot_be_read_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> Any:
        if path.name == "a.txt":
            raise PermissionError(13, "Permission denied")
        return open_regular(path)

    monkeypatch.setattr(OPENS, refuse)
    archive = opened(folder)
    assert "mine/a.txt" not in archive.namelist()
    assert left_out(archive) == ["mine/a.txt: Permission denied"]


def test_what_the_server_does_not_tell_of_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    class Untold:
        """An entry of NFS whose kind is asked for on its own: the server has just lost it."""

        name, path = "lost", str(folder / "lost")

        def is_symlink(self) -> bool:
            raise OSError(errno.ESTALE, "Stale file handle")

    @contextmanager
    def one_more(place: Path) -> Iterator[list[Any]]:
        with scandir(place) as entries:
            yield [*entries, *([Untold()] if place == folder else [])]

    monkeypatch.setattr(os, "scandir", one_more)
    assert left_out(opened(folder)) == ["mine/lost: Stale file handle"]


def test_a_folder_that_goes_meanwhile_is_left_out(folder: Path) -> None:
    (folder / "b").mkdir()
    found = found_in(folder)
    assert [str(next(found).path) for _ in range(3)] == ["a.txt", "b", "deep"]
    (folder / "b").rmdir()
    assert {str(one.path): one.reason for one in found}["b"] == "No such file or directory"


def test_a_file_of_that_name_is_not_replaced(folder: Path) -> None:
    (folder / LEFT_OUT).write_text("mine")
    (folder / "link").symlink_to("/etc")
    archive = opened(folder)
    assert archive.read(f"mine/{LEFT_OUT}") == b"mine"
    assert archive.read(f"mine/2-{LEFT_OUT}") == b"mine/link: a link\n"


def test_what_is_too_much_is_left_out(folder: Path) -> None:
    archive = opened(folder, most=2)
    assert archive.namelist() == ["mine/a.txt", "mine/deep/", f"mine/{LEFT_OUT}"]
    assert left_out(archive) == ["all after the first 2 files and folders"]


def test_it_comes_in_pieces_that_are_never_empty(tmp_path: Path) -> None:
    folder = tmp_path / "large"
    folder.mkdir()
    for number in range(2):
        (folder / f"{number}.bin").write_bytes(os.urandom(1 << 21))
    pieces = list(zipped(folder))
    assert all(pieces)
    # A piece, and what the compression of the next had held back.
    assert max(map(len, pieces)) < 3 << 20
    archive = zipfile.ZipFile(io.BytesIO(b"".join(pieces)))
    assert archive.read("large/1.bin") == (folder / "1.bin").read_bytes()


def test_a_file_that_grows_is_sent_as_long_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grown(path: Path) -> Any:
        file, status = open_regular(path)
        with path.open("ab") as stream:
            stream.write(b"more")
        return file, status

    monkeypatch.setattr(OPENS, grown)
    assert opened(folder).read("mine/a.txt") == b"a"


@pytest.mark.parametrize(("seconds", "year"), [(0, 1980), (4_400_000_000, 2107)])
def test_a_time_that_zip_does_not_know_becomes_the_nearest(
    folder: Path, seconds: int, year: int
) -> None:
    os.utime(folder / "a.txt", (seconds, seconds))
    assert opened(folder).getinfo("mine/a.txt").date_time[0] == year


class Bare(FolderHandler):
    """Asks nobody who asks."""

    async def prepare(self, *_: Any) -> None:  # type: ignore[override]
        self.current_user = "ann"

    def check_xsrf_cookie(self) -> None:
        pass


async def asked(home: Path, path: str) -> Any:
    """Ask a server for a folder."""
    contents = SessionContents(root_dir=str(home))
    settings: dict[str, Any] = {"contents_manager": contents, "base_url": "/", "headers": {}}
    server = HTTPServer(Application([("/f(.*)", Bare)], **settings))
    socket, port = bind_unused_port()
    server.add_socket(socket)
    try:
        return await AsyncHTTPClient().fetch(f"http://127.0.0.1:{port}/f{path}")
    finally:
        server.stop()


def test_it_is_sent_as_a_zip_file_of_the_folders_name(folder: Path) -> None:
    answer = asyncio.run(asked(folder.parent, "/mine/deep"))
    assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''deep.zip"
    archive = zipfile.ZipFile(io.BytesIO(answer.body))
    assert archive.namelist() == ["deep/empty/", "deep/ü.bin"]


@pytest.mark.parametrize("path", ["/gone", "/mine/a.txt", "/.hidden", "/../other"])
def test_what_is_no_folder_of_the_file_browsers_is_not_found(folder: Path, path: str) -> None:
    (folder.parent / ".hidden").mkdir()
    (folder.parent.parent / "other").mkdir(exist_ok=True)
    with pytest.raises(HTTPClientError, match="404"):
        asyncio.run(asked(folder.parent, path))


def test_one_that_breaks_off_does_not_look_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(folder: Path) -> Iterator[bytes]:
        yield b"PK"
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(folder_download, "zipped", broken)
    caplog.set_level(logging.WARNING)
    with pytest.raises(HTTPStreamClosedError):
        asyncio.run(asked(folder.parent, "/mine"))
    assert f"The download of the folder {folder} broke off" in caplog.text
