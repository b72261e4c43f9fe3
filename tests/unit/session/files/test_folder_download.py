import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dsportal.session.files import folder_download
from dsportal.session.files.folder_download import LEFT_OUT, zipped


def opened(folder: Path) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(io.BytesIO(b"".join(zipped(folder))))
    assert archive.testzip() is None
    return archive


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
    os.utime(folder / "run.sh", (1_000_000_000, 1_000_000_000))
    archive = opened(folder)
    assert archive.namelist() == [
        "mine/a.txt", "mine/deep/", "mine/run.sh", "mine/deep/empty/", "mine/deep/ü.bin",
    ]  # fmt: skip
    assert archive.read("mine/deep/ü.bin") == (folder / "deep/ü.bin").read_bytes()
    assert archive.getinfo("mine/run.sh").external_attr >> 16 & 0o777 == 0o750
    assert archive.getinfo("mine/run.sh").date_time[0] == 2001


def test_what_is_hidden_is_not_in_it(folder: Path) -> None:
    (folder / ".secret").write_text("s")
    (folder / "deep/.git").mkdir()
    (folder / "deep/.git/config").write_text("c")
    assert not [name for name in opened(folder).namelist() if "/." in name]


def test_what_is_left_out_is_named_with_the_reason(folder: Path) -> None:
    (folder / "link").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    archive = opened(folder)
    assert archive.read(f"mine/{LEFT_OUT}").decode() == "mine/link: a link\nmine/pipe: not a file\n"
    assert "mine/link" not in archive.namelist()


def test_a_file_that_cannot_be_read_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> Any:
        if path.name == "a.txt":
            raise PermissionError(13, "Permission denied")
        return real(path)

    real = folder_download._opened
    monkeypatch.setattr(folder_download, "_opened", refuse)
    archive = opened(folder)
    assert "mine/a.txt" not in archive.namelist()
    assert archive.read(f"mine/{LEFT_OUT}") == b"mine/a.txt: Permission denied\n"


def test_a_folder_that_goes_meanwhile_is_left_out(folder: Path) -> None:
    pieces = zipped(folder)
    (folder / "b").mkdir()
    found = folder_download.found_in(folder)
    assert [str(next(found).path) for _ in range(3)] == ["a.txt", "b", "deep"]
    (folder / "b").rmdir()
    rest = {str(one.path): one.reason for one in found}
    assert rest["b"] == "No such file or directory"
    assert b"".join(pieces)


def test_a_pipe_in_a_files_place_keeps_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a file"):
        folder_download._opened(tmp_path / "pipe")


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


def test_names_that_are_no_text_do_not_break_it(tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / os.fsdecode(b"\xff.txt")).write_text("x")
    assert opened(folder).read(f"odd/{LEFT_OUT}") == b"odd/?.txt: its name is not UTF-8\n"


def test_a_file_of_before_1980_has_zips_first_day(folder: Path) -> None:
    os.utime(folder / "a.txt", (0, 0))
    assert opened(folder).getinfo("mine/a.txt").date_time == (1980, 1, 1, 0, 0, 0)
