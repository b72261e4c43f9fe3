"""The hub's database: its own SQLite file, or a PostgreSQL of the site."""

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote

from portal.settings_file import SettingsError

CONNECT_SECONDS = 3
SILENT_SECONDS = 10


class HubConnection(sqlite3.Connection):
    """A connection that writes ahead into a log, and waits for the disk only now and then.

    The hub writes ten times while a session starts, and its pages wait meanwhile: each write
    waited for the disk. What is written survives a hub that is killed. After a power failure the
    last moments may be missing, as if the hub had been killed a little earlier, and the file is
    whole (sqlite.org/wal.html, sqlite.org/pragma.html#pragma_synchronous). Where the file system
    has no such log, on a network for instance, all stays as SQLite does it.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        (mode,) = self.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode == "wal":
            self.execute("PRAGMA synchronous=NORMAL")


def sqlite_options() -> dict[str, Any]:
    """Return how the hub opens its SQLite file: another may hold it for a moment, as a backup."""
    return {"connect_args": {"timeout": 30, "factory": HubConnection}}


def postgresql_url(url: str, password_file: str) -> str:
    """Return a site's address as SQLAlchemy takes it, with the driver and the passwords' file."""
    if password_file:
        _check_password_file(Path(password_file))
    return libpq_url(url, password_file).replace("postgresql:", "postgresql+psycopg:", 1)


def libpq_url(url: str, password_file: str) -> str:
    """Return a site's address as PostgreSQL's own programs take it."""
    if not password_file:
        return url
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}passfile={quote(password_file)}"


def _check_password_file(file: Path) -> None:
    """Refuse what libpq would pass over with a warning in the log."""
    key = "hub.database_password_file"
    if not os.access(file, os.R_OK):
        raise SettingsError(f"{key}: {file} cannot be read by the hub's user")
    if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"{key}: {file} can be read by others; its mode must be 0600")


def postgresql_options() -> dict[str, Any]:
    """Return how the hub reaches PostgreSQL: it serves nobody while it waits for an answer.

    A server that says nothing is given up soon, and a connection that has lain idle is tried
    before it is used (libpq's parameters, in seconds but for the last, which is in milliseconds).
    """
    patience = {
        "connect_timeout": CONNECT_SECONDS,
        "keepalives_idle": SILENT_SECONDS,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": SILENT_SECONDS * 1000,
    }
    return {"connect_args": patience, "pool_pre_ping": True}
