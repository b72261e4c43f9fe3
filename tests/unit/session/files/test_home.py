import stat
from pathlib import Path

import pytest

from dsportal.session.files.home import make_runtime_folder, refresh_links, remove_runtime_folder


def test_a_link_is_made(tmp_path: Path) -> None:
    refresh_links(tmp_path, {"isilon": "/mnt/isilon"})
    assert (tmp_path / "isilon").readlink() == Path("/mnt/isilon")


def test_an_old_link_follows_the_settings(tmp_path: Path) -> None:
    (tmp_path / "templates").symlink_to("/opt/old")
    refresh_links(tmp_path, {"templates": "/opt/new"})
    assert (tmp_path / "templates").readlink() == Path("/opt/new")
    assert [path.name for path in tmp_path.iterdir()] == ["templates"]


def test_a_link_that_is_right_is_left_alone(tmp_path: Path) -> None:
    link = tmp_path / "templates"
    link.symlink_to("/opt/templates")

    def made() -> tuple[int, int]:
        # Not when it was read: looking is no change.
        found = link.lstat()
        return found.st_ino, found.st_ctime_ns

    before = made()
    refresh_links(tmp_path, {"templates": "/opt/templates"})
    assert made() == before


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_the_users_stays(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "isilon"
    own.mkdir() if kind == "folder" else own.write_text("mine")
    refresh_links(tmp_path, {"isilon": "/mnt/isilon"})
    assert not own.is_symlink()
    assert "something of the user's has that name" in caplog.text


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "a/b"])
def test_a_name_that_leaves_the_home_is_refused(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    refresh_links(home, {name: "/mnt/isilon"})
    assert "it is not a plain name" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_home_that_is_not_there_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refresh_links(tmp_path / "none", {"isilon": "/mnt/isilon"})
    assert "No link" in caplog.text


def test_only_the_user_enters_the_runtime_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = make_runtime_folder("12")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    remove_runtime_folder(folder)
    assert list(tmp_path.iterdir()) == []
