"""The hub's connections to PostgreSQL; imported only where a site has one."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from dsportal.hub.database import ANSWER_SECONDS
from dsportal.hub.leader import LockUnknown

CONNECT_SECONDS = 2
_HUB_LOCK = 0x6473706F7274616C  # "dsportal": the same for every machine that may run this hub
_IS_FREE = """\
SELECT NOT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objid = %s AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
"""
_END_OTHERS = """\
SELECT bool_and(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE usename = current_user AND datname = current_database() AND pid <> pg_backend_pid()
"""
_ENDS_IN_SILENCE = {
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 2,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 11_000,  # where something was sent that is not acknowledged
}


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that gives up when the server says nothing for a while, and is closed then.

    The server may be stopped, and its host take what is sent: no parameter of libpq's covers that.
    """

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for an answer."""
        try:
            return super().wait(gen, interval, timeout or ANSWER_SECONDS)
        except psycopg.OperationalError:
            self.pgconn.finish()
            raise


def connect(url: str) -> BoundedConnection:
    """Connect, ``url`` as of `database.libpq_url`; a server that says nothing is given up soon."""
    return BoundedConnection.connect(
        url,
        connect_timeout=CONNECT_SECONDS,
        keepalives_idle=10,
        keepalives_interval=2,
        keepalives_count=3,
    )


def options(url: str, *checks: Callable[[], None]) -> dict[str, Any]:
    """Return how the hub reaches PostgreSQL, unless one of the ``checks`` raises."""

    def checked() -> BoundedConnection:
        for check in checks:
            check()
        return connect(url)

    return {"creator": checked}


class Probe:
    """Asks the server for nothing, on a connection of its own; raises when it does not answer."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: BoundedConnection | None = None

    def __call__(self) -> None:
        """Ask; once more on a new connection where the one of before has ended."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.execute("SELECT 1")
                return
            self._connection.close()
            self._connection = None
        connection = connect(self._url)
        connection.autocommit = True
        connection.execute("SELECT 1")
        self._connection = connection


class HubLock:
    """An advisory lock, which the server gives to one connection and frees when that has ended.

    postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS. Its methods raise
    `LockUnknown` where the server does not answer.
    """

    def __init__(self, url: str) -> None:
        """``url``: as of `database.libpq_url`; the server itself, not a pooler before it."""
        self._url = url
        self._connection: BoundedConnection | None = None
        self._is_ours = False

    def is_held(self) -> bool:
        """Take it, or see that it still is ours; false: another has it."""
        if self._is_ours:
            with suppress(LockUnknown):
                return self._ask("SELECT true")
        # A replica has locks of its own.
        take = "SELECT NOT pg_is_in_recovery() AND pg_try_advisory_lock(%s)"
        self._is_ours = self._ask(take, _HUB_LOCK)
        return self._is_ours

    def is_free(self) -> bool:
        """Say whether nobody has it, and leave it as it is."""
        return self._ask(_IS_FREE, _HUB_LOCK >> 32, _HUB_LOCK & 0xFFFFFFFF)

    def end_others(self) -> None:
        """End the other connections of our role to this database: those of the hub before."""
        self._ask(_END_OTHERS)

    def _ask(self, question: str, *values: int) -> bool:
        try:
            if self._connection is None:
                self._connection = self._connect()
            answer = self._connection.execute(question.encode(), values or None).fetchone()
        except psycopg.Error as error:
            self._close()
            raise LockUnknown(str(error)) from error
        return answer == (True,)

    def _connect(self) -> BoundedConnection:
        connection = connect(self._url)
        try:
            connection.autocommit = True
            # A machine that is gone says nothing: its connection ends after 11 s of silence.
            for name, value in _ENDS_IN_SILENCE.items():
                connection.execute(f"SET {name} = {value}".encode())
        except psycopg.Error:
            connection.close()
            raise
        return connection

    def _close(self) -> None:
        self._is_ours = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
