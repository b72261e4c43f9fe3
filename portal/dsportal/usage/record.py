"""The hub's own record of sessions: an SQLite file that outlives the hub.

One row for a session, written when it is seen to run and when it ends. Writing the same twice
changes nothing. A row whose end nobody saw, because the hub was away, says when the session was
last seen; a session that is seen again goes on.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dsportal.usage.report import Use
from jupyterhub_gpu_slurm.session.observation import Ending, SessionNews

_FILE_NAME = "usage.sqlite"
_PATIENCE_SECONDS = 10.0
_LOST_AFTER = timedelta(days=1)
_UNKNOWN = Ending.UNKNOWN.value

SCHEMA_VERSION = 1
"""Of the tables, kept in the file's ``user_version``; a file of before there were versions has 0.

Raise it when an older release would read the file wrongly, and let `_open` bring older files to it.
"""

_SCHEMA = f"""\
CREATE TABLE IF NOT EXISTS sessions (
    session_id TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    groups TEXT NOT NULL,  -- a JSON list
    gpus INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    partition TEXT,
    node TEXT,
    started INTEGER NOT NULL,  -- seconds of Unix time, as all times here
    seen INTEGER NOT NULL,
    ended INTEGER,
    ending TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS sessions_by_start ON sessions (started);
PRAGMA user_version = {SCHEMA_VERSION};
"""
_COLUMNS = "PRAGMA table_info(sessions)"
# No other version of the schema: older releases read and write a file with these, too.
_LATER_COLUMNS = {
    "options": "TEXT",  # a JSON object; NULL: written before there were options
    "name": "TEXT NOT NULL DEFAULT ''",  # JupyterHub's, of the server
}
# The last word counts, not the latest time: a clock that was ahead is set back.
_SEEN = """\
INSERT INTO sessions
(session_id, user, groups, gpus, job_id, partition, node, started, seen, options, name)
VALUES (
    :session_id, :user, :groups, :gpus, :job_id, :partition, :node, :started, :seen, :options, :name
)
ON CONFLICT (session_id) DO UPDATE SET
    seen = CASE WHEN :is_over THEN seen ELSE excluded.seen END, ended = NULL, ending = NULL,
    options = excluded.options, name = excluded.name
WHERE ending IS NULL OR ending = :unknown
"""
# The end that Slurm tells, else the moment at which the session was last seen.
_ENDED = """\
UPDATE sessions SET ended = MAX(started, COALESCE(:ended, seen)), ending = :ending
WHERE session_id = :session_id AND (ending IS NULL OR ending = :unknown)
"""
_LOST = """\
UPDATE sessions SET ended = seen, ending = :unknown WHERE ended IS NULL AND seen < :before
"""
_OLD = "DELETE FROM sessions WHERE ended < :before"
_WITHIN = """\
SELECT user, groups, gpus, started, seen, ended, job_id FROM sessions
WHERE started < ? AND (ended IS NULL OR ended > ?)
"""
_PAST = """\
SELECT job_id, gpus, partition, node, started, ended, ending, options, name FROM sessions
WHERE user = ? AND ended IS NOT NULL ORDER BY ended DESC, started DESC LIMIT ?
"""
_ONE = """\
SELECT job_id, gpus, partition, node, started, ended, ending, options, name FROM sessions
WHERE user = ? AND job_id = ? AND ended IS NOT NULL ORDER BY started DESC LIMIT 1
"""


class NewerRecordError(sqlite3.DatabaseError):
    """The file is of a newer release, and is left as it is."""


@dataclass(frozen=True)
class PastSession:
    """A session that is over."""

    job_id: int
    gpus: int
    partition: str | None
    node: str | None
    started: datetime
    ended: datetime
    ending: Ending
    options: Mapping[str, Any] = field(default_factory=dict)
    """What its user had chosen; empty where an older release wrote it down."""
    name: str = ""
    """The session's name; empty for the default session, and in rows of an older release."""


@dataclass(frozen=True)
class UsageRecord:
    """The database file. Only the hub writes it; others may read it. Raises `sqlite3.Error`."""

    file: Path
    is_shared: bool = False
    """Whether several machines use it: a log of writes ahead is for one alone (sqlite.org/wal)."""

    @classmethod
    def of_hub(cls, state_dir: str, *, is_shared: bool = False) -> "UsageRecord":
        """Return the record of the hub that keeps its state in this folder."""
        return cls(Path(state_dir, _FILE_NAME), is_shared)

    def write(self, news: Iterable[SessionNews]) -> None:
        """Note what was heard of sessions, in this order."""
        with closing(self._open()) as database, database:
            for one in news:
                _write(database, one)

    def prune(self, now: datetime, keep: timedelta) -> None:
        """Close what was not seen for a day, and forget what ended before the time to keep."""
        with closing(self._open()) as database, database:
            database.execute(_LOST, {"before": _seconds(now - _LOST_AFTER), "unknown": _UNKNOWN})
            database.execute(_OLD, {"before": _seconds(now - keep)})

    def uses(self, since: datetime, until: datetime) -> list[Use]:
        """Return the sessions that may have run in a span; none where there is no file yet."""
        return [_use(*row) for row in self._read(_WITHIN, _seconds(until), _seconds(since))]

    def past(self, user: str, most: int) -> list[PastSession]:
        """Return a user's sessions that are over, the last to end first."""
        return [_past(*row) for row in self._read_own(_PAST, user, most)]

    def ended(self, user: str, job_id: int) -> PastSession | None:
        """Return one of a user's sessions, if it is over and known."""
        return next((_past(*row) for row in self._read_own(_ONE, user, job_id)), None)

    def _read_own(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Ask as the hub, which brings the file of an older release to its own columns first."""
        with closing(self._open()) as database:
            return database.execute(query, values).fetchall()

    def _read(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        if not self.file.exists():
            return []
        address = f"{self.file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE_SECONDS)) as database:
            self._schema_of(database)
            return database.execute(query, values).fetchall()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.file, timeout=_PATIENCE_SECONDS)
        try:
            self._prepare(database)
        except BaseException:
            database.close()
            raise
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        found = self._schema_of(database)
        # Readers do not wait for the writer, nor the writer for the disk; see hub/database.py.
        database.execute(f"PRAGMA journal_mode={'DELETE' if self.is_shared else 'WAL'}")
        if not self.is_shared:
            database.execute("PRAGMA synchronous=NORMAL")
        if found < SCHEMA_VERSION:
            database.executescript(_SCHEMA)
        if _columns_lacking(database):
            with database:
                # Whoever else opens it now waits, and then finds them there.
                database.execute("BEGIN IMMEDIATE")
                for name in _columns_lacking(database):
                    added = f"ALTER TABLE sessions ADD COLUMN {name} {_LATER_COLUMNS[name]}"
                    database.execute(added)

    def _schema_of(self, database: sqlite3.Connection) -> int:
        (found,) = database.execute("PRAGMA user_version").fetchone()
        if found > SCHEMA_VERSION:
            raise NewerRecordError(
                f"{self.file} has schema {found}, and this release reads up to {SCHEMA_VERSION}: "
                "deploy the release that wrote it, or move the file away to begin a new record"
            )
        return int(found)


def _columns_lacking(database: sqlite3.Connection) -> list[str]:
    there = {name for _, name, *_ in database.execute(_COLUMNS)}
    return [name for name in _LATER_COLUMNS if name not in there]


def _write(database: sqlite3.Connection, news: SessionNews) -> None:
    if news.started is not None:
        row = {
            "unknown": _UNKNOWN,
            "session_id": news.session_id,
            "user": news.user,
            "groups": json.dumps(sorted(news.groups)),
            "gpus": news.gpus,
            "job_id": news.job_id,
            "partition": news.partition,
            "node": news.node,
            "started": _seconds(news.started),
            "is_over": news.ending is not None,
            # What has ended was not seen to run just now.
            "seen": _seconds(news.started if news.ending else news.seen),
            "options": json.dumps(dict(news.options)),
            "name": news.name,
        }
        database.execute(_SEEN, row)
    if news.ending is not None:
        ended = None if news.ended is None else _seconds(news.ended)
        end = {"session_id": news.session_id, "ended": ended, "ending": news.ending.value}
        database.execute(_ENDED, {**end, "unknown": _UNKNOWN})


def _use(
    user: str, groups: str, gpus: int, started: int, seen: int, ended: int | None, job_id: int
) -> Use:
    return Use(
        user=user,
        groups=frozenset(json.loads(groups)),
        gpus=gpus,
        started=_moment(started),
        seen=_moment(seen),
        ended=None if ended is None else _moment(ended),
        job_id=job_id,
    )


def _past(
    job_id: int,
    gpus: int,
    partition: str | None,
    node: str | None,
    started: int,
    ended: int,
    ending: str,
    options: str | None,
    name: str,
) -> PastSession:
    return PastSession(
        job_id=job_id,
        gpus=gpus,
        partition=partition,
        node=node,
        started=_moment(started),
        ended=_moment(ended),
        ending=Ending(ending),
        options=json.loads(options or "{}"),
        name=name,
    )


def _seconds(moment: datetime) -> int:
    return round(moment.timestamp())


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
