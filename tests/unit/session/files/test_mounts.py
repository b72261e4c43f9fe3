"""Mounts, the links to them, and what is said of them. Hanging ones: test_hanging_mount."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from dsportal.session.files import mounts as mounts_module
from dsportal.session.files.mounts import (
    Mounts,
    MountState,
    NoAnswer,
    answer_of,
    first_on_the_way,
    is_served,
    mounted,
)

MOUNTINFO = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:40 / /mnt/isilon rw - autofs systemd-1 rw,fd=44
41 40 0:41 / /mnt/isilon rw,relatime shared:9 - nfs 10.0.0.1:/ifs rw,vers=3,hard
42 22 0:42 / /mnt/my\\040nas rw - nfs4 nas:/ rw,vers=4.2
"""


def test_what_is_mounted_last_counts() -> None:
    assert mounted(MOUNTINFO) == {"/": "ext4", "/mnt/isilon": "nfs", "/mnt/my nas": "nfs4"}


@pytest.mark.parametrize("space", ["\v", "\f", "\r", "\x1c", "\x85", "\xa0", "\u2028"])
def test_a_strange_name_of_somebodys_mount_hides_no_other(
    space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bens = f"50 22 0:50 / /mnt/b{space}x rw - fuse.x{space} b{space}x rw,user_id=1002\n"
    (tmp_path / "mountinfo").write_bytes((bens + MOUNTINFO).encode())
    monkeypatch.setattr(mounts_module, "MOUNTINFO", tmp_path / "mountinfo")
    found = mounts_module.mounted_now()
    assert found == {f"/mnt/b{space}x": f"fuse.x{space}", **mounted(MOUNTINFO)}


@pytest.mark.parametrize(
    ("kind", "is_one"),
    [
        *(("nfs", True), ("nfs4", True), ("fuse.sshfs", True), ("fuse", True)),
        *(("fuseblk", False), ("fusectl", False), ("ext4", False), ("autofs", False)),
    ],
)
def test_file_systems_with_a_server_are_asked(kind: str, is_one: bool) -> None:
    assert is_served(kind) is is_one


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with links of all kinds; ``/mnt/isilon`` is not there and never touched."""
    (tmp_path / "isilon").symlink_to("/mnt/isilon")
    (tmp_path / "data").symlink_to("isilon/data")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/up").symlink_to("../isilon")
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "near").symlink_to("/mnt/isilonx")
    (tmp_path / "plain").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        *(("isilon", True), ("isilon/a/b", True), ("data", True), ("data/x", True)),
        *(("deep/up/x", True), ("isilon/../plain", True), ("", False), ("plain", False)),
        *(("deep", False), ("near/x", False), ("none/x", False), ("round", False)),
    ],
)
def test_a_path_is_followed_link_by_link(home: Path, path: str, leads: bool) -> None:
    found = first_on_the_way(f"{home}/{path}", {"/mnt/isilon"})
    assert found == ("/mnt/isilon" if leads else None)


def test_a_folder_that_is_no_mount_is_missing_and_may_be_touched(tmp_path: Path) -> None:
    mounts = Mounts([str(tmp_path), str(tmp_path / "none")], now=lambda: 7.0)
    asyncio.run(mounts.look())
    points = [str(tmp_path), str(tmp_path / "none")]
    # Other tests on this host may have a mount that hangs at this moment.
    found = [one for one in mounts.troubled() if one.point in points]
    assert [(one.point, one.state, one.since) for one in found] == [
        (point, "missing", 7.0) for point in points
    ]
    assert not mounts.dead() & set(points)
    assert mounts.trouble_on(str(tmp_path / "file")) is None


def test_since_when_it_is_so_is_kept(tmp_path: Path) -> None:
    moments = iter([1.0, 2.0])
    mounts = Mounts([str(tmp_path)], now=lambda: next(moments))
    asyncio.run(mounts.look())
    asyncio.run(mounts.look())
    found = [one for one in mounts.troubled() if one.point == str(tmp_path)]
    assert [trouble.since for trouble in found] == [1.0]


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (None, ("answers", "")),
        (PermissionError(13, "Permission denied"), ("answers", "")),
        (FileNotFoundError(2, "No such file or directory"), ("missing", "")),
        (OSError(5, "Input/output error"), ("fails", "Input/output error")),
        (OSError(19, "No such device"), ("fails", "No such device")),
    ],
)
def test_an_error_is_an_answer_too(error: OSError | None, answer: tuple[str, str]) -> None:
    async def asked() -> tuple[str, str]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
        return answer_of(future, is_mounted=True)

    assert asyncio.run(asked()) == answer


def test_words_name_the_mount_and_the_moment_wherever_the_node_is() -> None:
    words = str(NoAnswer(MountState("/mnt/isilon", "hangs", 0.0)))
    assert words.startswith("/mnt/isilon has not responded since 1 Jan 00:00 UTC. ")
    failing = MountState("/mnt/isilon1", "fails", 0.0, "Input/output error").words()
    assert failing.endswith("(Input/output error)")


def test_what_is_mounted_in_the_place_of_a_dead_mount_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    point, release = str(tmp_path), threading.Event()
    kinds = iter([{point: "nfs"}, {}, {point: "nfs"}])
    monkeypatch.setattr(mounts_module, "mounted_now", lambda: next(kinds))
    # The first server never answers, the next one does.
    answers_after = iter([30, 0])
    monkeypatch.setattr(mounts_module, "_ask", lambda _: release.wait(next(answers_after)))

    async def look() -> list[frozenset[str]]:
        mounts, found = Mounts(), []
        # The one that answers has any time for it.
        for patience in (0.1, 20, 20):
            monkeypatch.setattr(mounts_module, "PATIENCE_SECONDS", patience)
            await mounts.look()
            found.append(mounts.dead())
        release.set()
        return found

    assert asyncio.run(look()) == [{point}, set(), set()]


def test_a_look_that_fails_is_not_the_last(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mounts_module, "_ROUND_SECONDS", 0)
    looks = iter([OSError("too many open files"), None, SystemExit("twice more")])

    def mounted_now() -> dict[str, str]:
        if (trouble := next(looks)) is not None:
            raise trouble
        return {}

    monkeypatch.setattr(mounts_module, "mounted_now", mounted_now)
    with pytest.raises(SystemExit):
        asyncio.run(Mounts().watch())
    assert "mounts could not be looked at" in caplog.text


def test_a_second_mount_that_dies_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = (str(tmp_path / name) for name in ("first", "second"))
    mounts, release = Mounts(), threading.Event()
    mounts._known = {first: MountState(first, "hangs", 0.0)}
    monkeypatch.setattr(mounts_module, "PATIENCE_SECONDS", 0.05)

    def readlink(place: str) -> str:
        assert threading.current_thread() is not threading.main_thread()
        if place.startswith(second):
            release.wait(30)
        raise OSError

    async def look() -> None:
        mounts._known = {point: MountState(point, "hangs", 0.0) for point in (first, second)}

    monkeypatch.setattr(os, "readlink", readlink)
    monkeypatch.setattr(mounts, "look", look)
    with pytest.raises(NoAnswer, match=second):
        asyncio.run(asyncio.wait_for(mounts.in_time(lambda: None, f"{second}/file"), 20))
    release.set()
