"""Homes of people who are new."""

import grp
import os
import pwd
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "deploy/ansible/roles/accounts/files/homes.py"))


def user(home: Path, uid: int = 4321) -> pwd.struct_passwd:
    return pwd.struct_passwd(("new", "x", uid, uid, "", str(home), "/bin/bash"))


def test_a_home_is_its_users_and_nobody_elses(script: dict[str, Any], tmp_path: Path) -> None:
    script["ensure_home"](user(tmp_path / "new"), tmp_path)
    made = (tmp_path / "new").stat()
    assert (made.st_uid, made.st_gid, made.st_mode & 0o777) == (4321, 4321, 0o700)
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(os.listdir("/etc/skel"))


def test_a_home_that_is_there_is_left_alone(script: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "new").mkdir(mode=0o755)
    script["ensure_home"](user(tmp_path / "new"), tmp_path)
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("home", ["../elsewhere", "a/b", "..", "."])
def test_a_directory_cannot_have_folders_made_elsewhere(
    script: dict[str, Any], tmp_path: Path, home: str
) -> None:
    below = tmp_path / "homes"
    below.mkdir()
    script["ensure_home"](user(below / home), below)
    assert list(below.iterdir()) == []
    assert list(tmp_path.iterdir()) == [below]


def test_a_system_users_home_is_not_made(script: dict[str, Any], tmp_path: Path) -> None:
    script["ensure_home"](user(tmp_path / "new", uid=0), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_who_is_in_a_group_by_its_number_is_found(script: dict[str, Any]) -> None:
    assert "root" in script["people"]([], [grp.getgrgid(0).gr_name])


def test_an_unknown_group_is_an_error(script: dict[str, Any]) -> None:
    with pytest.raises(KeyError):
        script["people"]([], ["no-such-group"])
