"""Numbers for the users inside images that people build."""

import os
import pwd
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = ROOT / "deploy/ansible/roles/apptainer/files/subids.py"
FILES = ("subuid", "subgid")
MIDDLE = 2**31


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(PROGRAM))


def user(name: str, uid: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", "/home", "/bin/bash"))


def ranges(lines: list[str]) -> list[range]:
    numbers = [[int(number) for number in line.split(":")[1:]] for line in lines]
    return [range(start, start + count) for start, count in numbers]


def added(
    script: dict[str, Any], people: list[pwd.struct_passwd], before: str = "", *real: int
) -> list[str]:
    """Return what both files get, which is the same."""
    lines = script["additions"](people, dict.fromkeys(FILES, before), real)
    assert lines["subuid"] == lines["subgid"]
    return list(lines["subuid"])


def test_nobodys_numbers_are_anothers_or_a_real_users(script: dict[str, Any]) -> None:
    people = [user(f"u{uid}", uid) for uid in (1000, 1001, 1000 + script["PLACES"], 70000, 2**31)]
    given = ranges(added(script, people))
    assert [len(one) for one in given] == [65536] * len(people)
    assert len({number for one in given for number in (one[0], one[-1])}) == 2 * len(people)
    assert all(not set(one) & set(other) for one in given for other in given if one is not other)
    assert all(one[0] >= MIDDLE and one[-1] < 2**32 - 2 for one in given)


def test_machines_agree_on_numbers_without_asking_each_other(script: dict[str, Any]) -> None:
    people = [user("a", 5001), user("b", 5002)]
    assert added(script, people) == added(script, people[::-1])
    assert added(script, people)[1:] == added(script, people[1:])


def test_who_has_numbers_keeps_them(script: dict[str, Any]) -> None:
    assert added(script, [user("a", 5001)], "a:100000:65536\n") == []
    assert added(script, [user("a", 5001)], "5001:100000:65536\n") == []


def test_numbers_that_are_taken_are_passed_over(script: dict[str, Any]) -> None:
    (wanted,) = ranges(added(script, [user("a", 5001)]))
    taken = f"other:{wanted[-1]}:10\n"
    for before, real in ((taken, ()), ("", (wanted[7],))):
        (given,) = ranges(added(script, [user("a", 5001)], before, *real))
        assert not set(given) & set(wanted)


def test_the_second_file_gets_what_it_lacks(script: dict[str, Any]) -> None:
    texts = {"subuid": "a:100000:65536\n", "subgid": ""}
    lines = script["additions"]([user("a", 5001)], texts, [])
    assert lines["subuid"] == []
    assert len(lines["subgid"]) == 1


def test_a_line_that_was_lost_comes_again(script: dict[str, Any]) -> None:
    (line,) = added(script, [user("a", 5001)])
    texts = {"subuid": "", "subgid": f"{line}\n"}
    assert script["additions"]([user("a", 5001)], texts, []) == {"subuid": [line], "subgid": []}


def test_a_system_user_gets_none(script: dict[str, Any]) -> None:
    assert added(script, [user("daemon", 1)]) == []


def test_a_full_file_is_told(script: dict[str, Any]) -> None:
    with pytest.raises(script["SubidsError"], match="all numbers above"):
        added(script, [user("a", 5001)], f"other:{MIDDLE}:{MIDDLE}\n")


def test_a_strange_line_gives_nothing_and_stays(script: dict[str, Any], tmp_path: Path) -> None:
    before = "# a remark\nx:y:z\nlast:100000:65536"
    for name in FILES:
        (tmp_path / name).write_text(before)
    script["give"]([user("a", 5001)], tmp_path)
    for name in FILES:
        lines = (tmp_path / name).read_text().splitlines()
        assert lines[:-1] == before.splitlines()
        assert lines[-1].startswith("a:")
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o644
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(FILES)


def test_the_lock_is_taken_by_the_python_of_el_9_too(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is 3.9, and hardlink_to came with 3.10."""
    monkeypatch.delattr(Path, "hardlink_to")
    with script["locked"](tmp_path / "subuid"):
        assert (tmp_path / "subuid.lock").read_text() == str(os.getpid())
    assert os.listdir(tmp_path) == []


def test_useradds_lock_is_respected(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "subgid.lock").write_text("1")
    monkeypatch.setitem(script["locked"].__wrapped__.__globals__, "LOCK_SECONDS", 0)
    with pytest.raises(script["SubidsError"], match=r"subgid\.lock is held"):
        script["give"]([user("a", 5001)], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["subgid.lock"]


def test_an_unknown_name_is_told_and_changes_nothing(tmp_path: Path) -> None:
    argv = [sys.executable, "-IS", str(PROGRAM), f"--folder={tmp_path}", "no-such-user"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "does not know the user or group" in done.stderr
    assert os.listdir(tmp_path) == []
