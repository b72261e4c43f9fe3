"""Apptainer's packages are those of the lock, wherever they come from."""

import hashlib
import re
from pathlib import Path

import apptainer
import bootstrap
import pytest
from apptainer import Apt, Package

CONTENT = b"what was tried"
MOMENT = "20261128T120000Z"
PATH = "pool/main/a/apptainer/apptainer_1.4.5-2+b1_amd64.deb"
FILE = "apptainer_1.4.5-2+b1_amd64.deb"


@pytest.fixture(autouse=True)
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a lock of one package, and folders in which archives could be."""
    lock = tmp_path / "lock"
    lock.write_text(f"# Archive at {MOMENT}.\n{hashlib.sha256(CONTENT).hexdigest()}  {PATH}\n")
    (tmp_path / "fetched").mkdir()
    monkeypatch.setattr(apptainer, "LOCK", lock)
    monkeypatch.setattr(apptainer, "SNAPSHOT", f"file://{tmp_path}/snapshot")
    monkeypatch.setattr(apptainer, "BROUGHT_ALONG", tmp_path / "packages/debian")
    monkeypatch.setattr(bootstrap, "PACKAGES", tmp_path / "packages")
    return tmp_path


def put(folder: Path, content: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(content)


def test_what_may_be_newer_than_the_lock_is_not_given_out_as_the_locks(
    archives: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []

    def build(folder: Path, prefix: Path, archive: str, *, takes_newest: bool) -> Path:
        asked.append(takes_newest)
        (folder / "tree").mkdir()
        return folder / "tree"

    monkeypatch.setattr(apptainer, "PACKED", archives / "packed")
    monkeypatch.setattr(apptainer, "build", build)
    for more in (["--newest"], ["--newest"], [], []):
        monkeypatch.setattr("sys.argv", ["apptainer.py", "/opt/apptainer", *more])
        assert apptainer.main() == 0
    assert asked == [True, False]
    newest, again, *locked = capsys.readouterr().out.split()
    assert newest == again
    assert newest not in locked
    assert len(set(locked)) == 1


def fetched(folder: Path, *, takes_newest: bool = False) -> bytes:
    archive = f"file://{folder}/archive"
    (file,) = apptainer.fetch(folder / "fetched", archive, takes_newest=takes_newest)
    return file.read_bytes()


def test_the_archive_is_asked_first(archives: Path) -> None:
    put(archives / "archive" / Path(PATH).parent, CONTENT)
    assert fetched(archives) == CONTENT


@pytest.mark.parametrize("present", [None, b"another build"])
def test_what_the_archive_has_not_comes_from_the_day_of_the_lock(
    archives: Path, present: bytes | None
) -> None:
    if present is not None:
        put(archives / "archive" / Path(PATH).parent, present)
    put(archives / "snapshot" / MOMENT / Path(PATH).parent, CONTENT)
    assert fetched(archives) == CONTENT


def test_another_version_is_taken_only_where_that_is_wanted_and_it_is_said(
    archives: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # In the place of apt, whose archive is signed by Debian.
    get = archives / "apt-get"
    get.write_text("#!/bin/sh\necho $2 > apptainer_2.0-1_amd64.deb\n")
    get.chmod(0o755)
    monkeypatch.setattr(Apt, "update", lambda _: None)
    monkeypatch.setattr(Apt, "get", lambda _: [str(get)])
    with pytest.raises(bootstrap.DeploymentError, match="apptainer_takes_newest"):
        fetched(archives)
    assert fetched(archives, takes_newest=True) == b"apptainer/sid\n"
    assert f"nobody has {FILE} any more: apptainer_2.0-1_amd64.deb" in capfd.readouterr().err


def test_a_release_takes_no_other_version(archives: Path) -> None:
    with pytest.raises(bootstrap.DeploymentError, match="deploy/lock apptainer"):
        fetched(archives)
    put(archives / "snapshot" / MOMENT / Path(PATH).parent, CONTENT)
    assert fetched(archives) == CONTENT


def test_packages_that_were_brought_along_are_taken_and_checked(archives: Path) -> None:
    put(archives / "packages/debian", CONTENT)
    assert fetched(archives) == CONTENT
    (archives / "packages/debian" / FILE).write_bytes(b"another")
    with pytest.raises(bootstrap.DeploymentError, match=re.escape(FILE)):
        fetched(archives)


def test_what_apt_prints_becomes_a_line_of_the_lock() -> None:
    digest = "2d" * 32
    printed = f"'http://deb.debian.org/debian/{PATH.replace('+', '%2b')}' {FILE} 5 SHA256:{digest}"
    line = apptainer.locked(printed)
    assert Package(*line.split()) == Package(digest, PATH)


def test_the_lock_has_every_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    moment, packages = apptainer.read_lock(apptainer.LOCK.read_text())
    assert re.fullmatch(r"\d{8}T\d{6}Z", moment)
    assert [package.name for package in packages] == list(apptainer.SUITES)
    assert all(re.fullmatch("[0-9a-f]{64}", package.sha256) for package in packages)
