"""SQLite as the hub's database: quick to write, whole after a crash."""

import sqlite3
from typing import Any


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
