import os
from pathlib import Path

import pytest

from dsportal.session.files.static import HomeCheckpoints


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home with a link to a folder that is read-only, also for root."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "templates/deep").mkdir(parents=True)
    (home / "templates").symlink_to(tmp_path / "templates")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("os.access", lambda path, mode: "templates" not in str(path))
    return home


def checkpoint_path(home: Path, path: str) -> Path:
    return Path(HomeCheckpoints(root_dir=str(home)).checkpoint_path("checkpoint", path))


def test_a_writable_folder_keeps_its_own(home: Path) -> None:
    assert checkpoint_path(home, "a.ipynb") == home / ".ipynb_checkpoints/a-checkpoint.ipynb"


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_those_of_a_folder_that_others_may_write_to_are_in_the_home(home: Path, mode: int) -> None:
    (home / "group").mkdir()
    (home / "group").chmod(mode)
    kept = home / ".local/share/data-scientist-portal/checkpoints"
    assert checkpoint_path(home, "group/a.ipynb") == kept / "group/a-checkpoint.ipynb"


def test_those_of_a_read_only_folder_are_in_the_home(home: Path) -> None:
    path = checkpoint_path(home, "templates/deep/a.ipynb")
    kept = home / ".local/share/data-scientist-portal/checkpoints"
    assert path == kept / "templates/deep/a-checkpoint.ipynb"
    assert path.parent.is_dir()


def test_namesakes_of_two_folders_do_not_meet(home: Path) -> None:
    assert checkpoint_path(home, "templates/a.ipynb") != checkpoint_path(
        home, "templates/deep/a.ipynb"
    )


def test_nobody_else_enters_where_they_are_kept(home: Path) -> None:
    before = os.umask(0o022)
    try:
        checkpoint_path(home, "templates/deep/a.ipynb")
    finally:
        os.umask(before)
    kept = home / ".local/share/data-scientist-portal/checkpoints"
    assert kept.stat().st_mode & 0o777 == 0o700
