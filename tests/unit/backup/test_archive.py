import os
from pathlib import Path

import pytest

from dsportal.backup import archive, manifest
from dsportal.backup.manifest import FORMAT, BackupEntry, BackupError, Kind, Manifest


def written(folder: Path, file: Path, *, sha256: str = "") -> Manifest:
    """Write a backup of one part."""
    (folder / "000.files").write_bytes(b"content" * 1000)
    part = BackupEntry(
        Kind.FILES, "/etc/x", "000.files", sha256 or archive.digest(folder / "000.files")
    )
    content = Manifest(FORMAT, "1.0", "head", "now", "", (part,))
    (folder / manifest.NAME).write_bytes(manifest.to_json(content))
    archive.write(content, folder, file)
    return content


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "staging").mkdir()
    return tmp_path / "staging"


def test_only_root_reads_it_and_it_reads_back(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "backup.tar.gz"
    content = written(folder, file)
    assert file.stat().st_mode & 0o777 == 0o600
    with archive.staging(tmp_path) as back:
        assert archive.read(file, back) == content
        assert (back / "000.files").read_bytes() == b"content" * 1000


def test_another_file_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "backup.tar.gz"
    file.write_text("mine")
    with pytest.raises(BackupError, match="is there already"):
        written(folder, file)
    assert file.read_text() == "mine"


def test_a_part_that_changed_is_noticed(folder: Path, tmp_path: Path) -> None:
    written(folder, tmp_path / "backup.tar.gz", sha256="0" * 64)
    with archive.staging(tmp_path) as back, pytest.raises(BackupError, match="/etc/x is not what"):
        archive.read(tmp_path / "backup.tar.gz", back)


def test_a_file_that_was_cut_off_is_noticed(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "backup.tar.gz"
    written(folder, file)
    file.write_bytes(file.read_bytes()[:-40])
    with archive.staging(tmp_path) as back, pytest.raises(BackupError, match="cannot be read"):
        archive.read(file, back)


def test_something_else_is_no_backup(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("hello")
    with archive.staging(tmp_path) as back, pytest.raises(BackupError, match="cannot be read"):
        archive.read(file, back)


def test_a_file_that_a_disk_has_spoiled_is_noticed(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "backup.tar.gz"
    (folder / "000.files").write_bytes(os.urandom(1 << 20))
    part = BackupEntry(Kind.FILES, "/etc/x", "000.files", archive.digest(folder / "000.files"))
    content = Manifest(FORMAT, "1.0", "head", "now", "", (part,))
    (folder / manifest.NAME).write_bytes(manifest.to_json(content))
    archive.write(content, folder, file)
    whole = file.read_bytes()
    half = len(whole) // 2
    file.write_bytes(whole[:half] + bytes(200_000) + whole[half + 200_000 :])
    with archive.staging(tmp_path) as back, pytest.raises(BackupError, match="cannot be read"):
        archive.read(file, back)
