"""Homes of people who are new."""

import grp
import os
import pwd
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[4]


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


def seen(path: Path) -> tuple[int, int, int]:
    told = path.lstat()
    return told.st_uid, told.st_gid, told.st_mode & 0o7777


def test_on_the_nas_there_is_a_folder_of_ones_own_and_one_of_the_group(
    script: dict[str, Any], tmp_path: Path
) -> None:
    group = grp.getgrgid(1)
    for _ in range(2):
        script["ensure_on_nas"](tmp_path, [user(tmp_path / "new")], [group.gr_name])
    assert seen(tmp_path / "users") == seen(tmp_path / "groups") == (0, 0, 0o755)
    assert seen(tmp_path / "users/new") == (4321, 4321, 0o755)
    assert seen(tmp_path / "groups" / group.gr_name) == (0, group.gr_gid, 0o2770)


def test_what_was_left_in_the_middle_is_finished(script: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "users/new").mkdir(parents=True)
    (tmp_path / "users/new").chmod(0o700)
    script["ensure_on_nas"](tmp_path, [user(tmp_path / "new")], [])
    assert seen(tmp_path / "users/new") == (4321, 4321, 0o755)


def test_a_folder_on_the_nas_keeps_what_its_owner_made_of_it(
    script: dict[str, Any], tmp_path: Path
) -> None:
    script["ensure_on_nas"](tmp_path, [user(tmp_path / "new")], [])
    (tmp_path / "users/new").chmod(0o700)
    script["ensure_on_nas"](tmp_path, [user(tmp_path / "new")], [])
    assert seen(tmp_path / "users/new") == (4321, 4321, 0o700)


def test_anothers_folder_of_that_name_is_not_given_away(
    script: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "users").mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "users/new").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="new"):
        script["ensure_on_nas"](tmp_path, [user(tmp_path / "new")], [])
    assert seen(tmp_path / "elsewhere")[0] == 0


@pytest.mark.parametrize(("owner", "mode"), [(0, 0o777), (4322, 0o755)])
def test_nothing_is_made_where_others_could_exchange_it(
    script: dict[str, Any], tmp_path: Path, owner: int, mode: int
) -> None:
    (tmp_path / "users").mkdir()
    (tmp_path / "users").chmod(mode)
    os.chown(tmp_path / "users", owner, owner)
    with pytest.raises(PermissionError, match="only root's"):
        script["ensure_on_nas"](tmp_path, [user(tmp_path / "new")], [])
    assert list((tmp_path / "users").iterdir()) == []


def test_a_system_user_has_nothing_on_the_nas(script: dict[str, Any], tmp_path: Path) -> None:
    script["ensure_on_nas"](tmp_path, [user(tmp_path / "new", uid=0)], [])
    assert list((tmp_path / "users").iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b"])
def test_a_name_that_leads_elsewhere_has_nothing_on_the_nas(
    script: dict[str, Any], tmp_path: Path, name: str
) -> None:
    person = pwd.struct_passwd((name, "x", 4321, 4321, "", "/home/new", "/bin/bash"))
    script["ensure_on_nas"](tmp_path, [person], [])
    assert list((tmp_path / "users").iterdir()) == []


def test_a_nas_that_does_not_let_root_is_told_of_and_no_failure(tmp_path: Path) -> None:
    program = ROOT / "deploy/ansible/roles/accounts/files/homes.py"
    # Names behind a group, as the role has them.
    argv = [sys.executable, str(program), str(tmp_path / "none"), "--on-nas", "--group=root"]
    argv += ["root"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("no folders for users ")
