"""The hub's database: its own SQLite file, or a PostgreSQL of the site."""

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dsportal.settings_file import SettingsError

ANSWER_SECONDS = 1.0
BUSY_SECONDS = 0.25


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
    """Return how the hub opens its SQLite file: it serves nobody while somebody else holds it."""
    return {"connect_args": {"timeout": BUSY_SECONDS, "factory": HubConnection}}


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


def sqlite_probe(file: str) -> Callable[[], None]:
    """Return what raises while somebody else writes into the file."""

    def probe() -> None:
        with closing(sqlite3.connect(file, timeout=ANSWER_SECONDS, isolation_level=None)) as one:
            one.execute("BEGIN IMMEDIATE")
            one.execute("ROLLBACK")

    return probe
