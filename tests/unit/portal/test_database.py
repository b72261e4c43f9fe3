import sqlite3
from pathlib import Path

from portal.database import HubConnection


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_the_hubs_database_does_not_wait_for_the_disk_at_each_write(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "hub.sqlite", factory=HubConnection)
    normal = 1
    assert pragma(connection, "journal_mode") == "wal"
    assert pragma(connection, "synchronous") == normal
    connection.close()


def test_a_database_without_such_a_log_stays_as_safe_as_sqlite_makes_it() -> None:
    connection = sqlite3.connect(":memory:", factory=HubConnection)
    full = 2
    assert pragma(connection, "synchronous") == full
    connection.close()
