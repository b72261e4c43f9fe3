import grp
import os
import struct
from pathlib import Path

import pytest

from dsportal.session.sharing import access
from dsportal.session.sharing.access import (
    Audience,
    Grant,
    SharingError,
    acl,
    audience_from,
)


@pytest.mark.parametrize(
    ("kind", "names", "read"),
    [
        ("people", ["ann", " bob ", "ann"], Audience("people", ("ann", "bob"))),
        ("group", ["lab"], Audience("group", ("lab",))),
        ("link", [], Audience("link")),
    ],
)
def test_an_audience_is_read(kind: str, names: list[str], read: Audience) -> None:
    assert audience_from(kind, names) == read


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("people", []),
        ("people", ["", " "]),
        ("people", ["ann"] * 3 + [str(number) for number in range(51)]),
        ("people", "ann"),
        ("people", [1]),
        ("group", []),
        ("group", ["a", "b"]),
        ("link", ["ann"]),
        ("everybody", []),
        (None, None),
    ],
)
def test_what_names_nobody_is_refused(kind: object, names: object) -> None:
    with pytest.raises(SharingError, match="Choose whom to share with"):
        audience_from(kind, names)


@pytest.mark.parametrize("name", ["nobody-of-that-name", "root", "daemon", "a\0b", "../x"])
def test_only_people_are_shared_with(name: str) -> None:
    with pytest.raises(SharingError, match="There is no user"):
        Grant(Audience("people", (name,)))


def test_a_group_must_be_ones_own() -> None:
    with pytest.raises(SharingError, match="your own groups only"):
        Grant(Audience("group", ("no-such-group",)))


def test_a_link_opens_a_file_to_all_who_reach_it(tmp_path: Path) -> None:
    grant = Grant(Audience("link"))
    (tmp_path / "x").write_text("x")
    for path, is_folder, mode in ((tmp_path / "x", False, 0o644), (tmp_path, True, 0o755)):
        descriptor = os.open(path, os.O_RDONLY)
        grant.give(descriptor, is_folder=is_folder)
        os.close(descriptor)
        assert path.stat().st_mode & 0o777 == mode


@pytest.mark.root
def test_a_group_opens_a_file_to_its_members_and_to_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "own_groups", lambda: ["daemon"])
    grant, number = Grant(Audience("group", ("daemon",))), grp.getgrnam("daemon").gr_gid
    (tmp_path / "x").write_text("x")
    for path, is_folder, mode in ((tmp_path / "x", False, 0o640), (tmp_path, True, 0o750)):
        descriptor = os.open(path, os.O_RDONLY)
        grant.give(descriptor, is_folder=is_folder)
        os.close(descriptor)
        status = path.stat()
        assert (status.st_mode & 0o777, status.st_gid) == (mode, number)


def test_an_acl_lets_those_in_who_are_named_and_nobody_else(tmp_path: Path) -> None:
    os.setxattr(tmp_path, "system.posix_acl_access", acl((1234, 5678), 7, 5))
    kept = os.getxattr(tmp_path, "system.posix_acl_access")
    entries = list(struct.iter_unpack("<HHI", kept[4:]))
    named = {number: bits for tag, bits, number in entries if tag == 0x02}
    others = [bits for tag, bits, _ in entries if tag in (0x04, 0x20)]
    assert (named, others) == ({1234: 5, 5678: 5}, [0, 0])
    # The class of groups shows the mask: what those who are named may do at most.
    assert tmp_path.stat().st_mode & 0o777 == 0o750
