import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dsportal.backup import databases, sqlite_files, trees
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
def test_what_sqlite_keeps_beside_a_database_comes_back_with_none(tmp_path: Path) -> None:
    """On a network's file system there is no log of writes ahead; this is what there is instead."""
    state, back = tmp_path / "state", tmp_path / "back"
    state.mkdir()
    file = state / "hub.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as hub:
        hub.executescript("CREATE TABLE users (name TEXT); PRAGMA cache_size=1; BEGIN")
        # More than the cache, so that the journal is one that SQLite would roll back.
        hub.executemany("INSERT INTO users VALUES (?)", [("a" * 4000,)] * 100)
        assert (state / "hub.sqlite-journal").stat().st_size > 512
        trees.pack(state, tmp_path / "tar", sqlite_files.PATTERNS)
        hub.execute("COMMIT")
        databases.copy_sqlite(file, tmp_path / "copy")
    trees.unpack(tmp_path / "tar", back, tmp_path / "aside")
    (back / "hub.sqlite-journal").touch()
    entry = BackupEntry(Kind.SQLITE, str(back / file.name), "x", "", "root", "root", 0o600)
    databases.put_sqlite(tmp_path / "copy", entry)
    assert [one.name for one in back.iterdir()] == ["hub.sqlite"]
    with closing(sqlite3.connect(back / file.name)) as hub:
        assert hub.execute("SELECT count(*) FROM users").fetchone() == (100,)


def test_what_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "hub.sqlite").write_text("hello" * 1000)
    with pytest.raises(BackupError, match=r"hub\.sqlite cannot be copied: file is not a database"):
        databases.copy_sqlite(tmp_path / "hub.sqlite", tmp_path / "copy")


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
