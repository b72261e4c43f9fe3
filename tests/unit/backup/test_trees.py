import io
import os
import tarfile
from pathlib import Path

import pytest

from dsportal.backup.manifest import BackupError
from dsportal.backup.trees import check, pack, unpack


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a secret of somebody else's, a link, a socket's like and a folder."""
    place = tmp_path / "state"
    (place / "hash.1").mkdir(parents=True)
    (place / "hash.1/script").write_text("#!/bin/sh\n")
    (place / "secret").write_text("s")
    (place / "secret").chmod(0o600)
    os.chown(place / "secret", 65534, 65534)
    (place / "hub.sqlite").write_text("taken in another way")
    (place / "link").symlink_to("secret")
    os.mkfifo(place / "pipe")
    return place


@pytest.mark.root
def test_owners_modes_and_links_come_back(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "tar", ["*.sqlite"])
    unpack(tmp_path / "tar", tmp_path / "new/state", tmp_path / "aside")
    back = tmp_path / "new/state"
    names = sorted(str(path.relative_to(back)) for path in back.rglob("*"))
    assert names == ["hash.1", "hash.1/script", "link", "secret"]
    found = (back / "secret").stat()
    assert (found.st_mode & 0o777, found.st_uid, found.st_gid) == (0o600, 65534, 65534)
    assert (back / "link").readlink() == Path("secret")


@pytest.mark.root
def test_the_state_is_written_before_the_scripts_below_it(folder: Path, tmp_path: Path) -> None:
    (folder / "a").mkdir()
    (folder / "job_state").touch()
    pack(folder, tmp_path / "tar", [])
    with tarfile.open(tmp_path / "tar") as tar:
        names = tar.getnames()
    assert names.index("root/job_state") < names.index("root/a")


@pytest.mark.root
def test_one_file_comes_back_too(folder: Path, tmp_path: Path) -> None:
    pack(folder / "secret", tmp_path / "tar", [])
    unpack(tmp_path / "tar", tmp_path / "key", tmp_path / "aside")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


@pytest.mark.root
def test_what_stands_there_goes_aside(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "tar", [])
    (folder / "secret").write_text("newer")
    unpack(tmp_path / "tar", folder, tmp_path / "aside")
    assert (folder / "secret").read_text() == "s"
    assert (tmp_path / "aside/secret").read_text() == "newer"


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=f"{tmp_path}/none is not there"):
        pack(tmp_path / "none", tmp_path / "tar", [])


@pytest.mark.parametrize("name", ["/etc/passwd", "root/../../etc/passwd", "other/file"])
def test_nothing_leaves_its_folder(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "tar", "w") as tar:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(BackupError, match="would leave its folder"):
        unpack(tmp_path / "tar", tmp_path / "new", tmp_path / "aside")


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """Its folder was a link when it was packed, and a folder again when it was walked."""
    elsewhere = tmp_path / "etc"
    elsewhere.mkdir()
    link, file = tarfile.TarInfo("root/d"), tarfile.TarInfo("root/d/rule")
    link.type, link.linkname = tarfile.SYMTYPE, str(elsewhere)
    with tarfile.open(tmp_path / "tar", "w") as tar:
        for member in (tarfile.TarInfo("root"), link, file):
            member.type = tarfile.DIRTYPE if member.name == "root" else member.type
            tar.addfile(member, io.BytesIO())
    with pytest.raises(BackupError, match="below a link"):
        unpack(tmp_path / "tar", tmp_path / "new", tmp_path / "aside")
    assert not list(elsewhere.iterdir())


def test_an_owner_that_this_machine_lacks_is_named(tmp_path: Path) -> None:
    member = tarfile.TarInfo("root")
    member.uname, member.gname = "nobody-of-that-name", "root"
    with tarfile.open(tmp_path / "tar", "w") as tar:
        tar.addfile(member)
    with pytest.raises(BackupError, match=r"nobody-of-that-name.* here: deploy first"):
        unpack(tmp_path / "tar", tmp_path / "new", tmp_path / "aside")


@pytest.mark.root
def test_an_owner_without_a_name_comes_back_as_its_number(folder: Path, tmp_path: Path) -> None:
    os.chown(folder / "secret", 54321, 54322)
    pack(folder, tmp_path / "tar", [])
    unpack(tmp_path / "tar", tmp_path / "new", tmp_path / "aside")
    found = (tmp_path / "new/secret").stat()
    assert (found.st_uid, found.st_gid) == (54321, 54322)


def test_what_cannot_be_put_back_leaves_no_folder_that_is_in_the_way(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("other/file"), io.BytesIO())
    with pytest.raises(BackupError):
        unpack(tmp_path / "tar", tmp_path / "new", tmp_path / "aside")
    assert [path.name for path in tmp_path.iterdir()] == ["tar"]


def test_a_file_system_of_its_own_is_refused_before_anything_changes(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    pack(tmp_path / "x", tmp_path / "tar", [])
    with pytest.raises(BackupError, match="/proc is a file system of its own"):
        check(tmp_path / "tar", Path("/proc"))
