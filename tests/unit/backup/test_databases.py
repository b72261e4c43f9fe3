import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dsportal.backup import databases
from dsportal.backup.manifest import BackupEntry, BackupError, Kind


@pytest.mark.root
def test_a_database_in_use_is_copied_as_of_one_moment_and_put_back(tmp_path: Path) -> None:
    file = tmp_path / "hub.sqlite"
    with closing(sqlite3.connect(file)) as hub:
        hub.execute("PRAGMA journal_mode=WAL")
        hub.executescript("CREATE TABLE users (name TEXT); INSERT INTO users VALUES ('ada')")
        hub.execute("INSERT INTO users VALUES ('not yet')")
        databases.copy_sqlite(file, tmp_path / "copy")
        hub.commit()
    databases.put_sqlite(
        tmp_path / "copy", BackupEntry(Kind.SQLITE, str(file), "x", "", "nobody", "nogroup", 0o600)
    )
    assert (file.owner(), file.stat().st_mode & 0o777) == ("nobody", 0o600)
    with closing(sqlite3.connect(file)) as hub:
        assert hub.execute("SELECT name FROM users").fetchall() == [("ada",)]


@pytest.mark.root
def test_a_link_of_the_hubs_user_is_not_written_through(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "copy")) as hub:
        hub.execute("CREATE TABLE users (name TEXT)")
    roots, state = tmp_path / "sudoers", tmp_path / "state"
    roots.write_text("root's own")
    state.mkdir()
    (state / ".hub.sqlite.restoring").symlink_to(roots)
    file = state / "hub.sqlite"
    databases.put_sqlite(
        tmp_path / "copy", BackupEntry(Kind.SQLITE, str(file), "x", "", "nobody", "nogroup", 0o600)
    )
    assert (roots.read_text(), roots.owner()) == ("root's own", "root")
    assert (file.is_symlink(), file.owner()) == (False, "nobody")


@pytest.mark.root
def test_a_failing_dump_says_what_the_program_said(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"pg_dump failed: .*No such file or directory"):
        databases.dump_postgresql(f"postgresql:///x?host={tmp_path}", "root", tmp_path / "dump")
