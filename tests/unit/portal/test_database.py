import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import make_url

from dsportal.hub.breaker import DatabaseAway, room_check
from dsportal.hub.database import HubConnection, postgresql_url
from dsportal.settings_file import SettingsError


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


def test_a_site_need_not_name_the_driver() -> None:
    assert postgresql_url("postgresql://hub@db/hub", "") == "postgresql+psycopg://hub@db/hub"


def test_a_password_comes_from_a_file_and_is_not_in_the_address(tmp_path: Path) -> None:
    file = tmp_path / "my pass&word"
    file.write_text("*:*:*:hub:secret\n")
    file.chmod(0o600)
    url = make_url(postgresql_url("postgresql://hub@db/hub?sslmode=require", str(file)))
    assert dict(url.query) == {"sslmode": "require", "passfile": str(file)}
    assert "secret" not in str(url)


def test_a_password_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pgpass"
    file.write_text("*:*:*:hub:secret\n")
    file.chmod(0o640)
    with pytest.raises(SettingsError, match="must be 0600"):
        postgresql_url("postgresql://hub@db/hub", str(file))


def test_a_password_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"{tmp_path}/none cannot be read"):
        postgresql_url("postgresql://hub@db/hub", str(tmp_path / "none"))


def test_a_nearly_full_disk_is_named(tmp_path: Path) -> None:
    room_check(str(tmp_path))()
    with pytest.raises(DatabaseAway, match=f"the disk of {tmp_path} is full .[0-9]+ MiB are free."):
        room_check(str(tmp_path), 1 << 60)()
