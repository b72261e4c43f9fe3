"""The hub's connections to PostgreSQL; imported only where a site has one."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from dsportal.hub.database import ANSWER_SECONDS
from dsportal.hub.leader import LockUnknown

CONNECT_SECONDS = 2
_HUB_LOCK = 0x6473706F7274616C  # "dsportal": the same for every machine that may run this hub


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

    postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS
    """

    def __init__(self, url: str) -> None:
        """``url``: as of `database.libpq_url`."""
        self._url = url
        self._connection: BoundedConnection | None = None

    def is_held(self) -> bool:
        """Take it, or see that it still is ours; false: another has it. Raises `LockUnknown`."""
        try:
            if self._connection is not None:
                with suppress(psycopg.Error):
                    self._connection.execute("SELECT 1")
                    return True
                self.release()
            return self._take()
        except psycopg.Error as error:
            raise LockUnknown(str(error)) from error

    def release(self) -> None:
        """Let it go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _take(self) -> bool:
        connection = connect(self._url)
        try:
            connection.autocommit = True
            # A machine that is gone says nothing: its connection ends after 11 s of silence.
            for name, value in (("idle", 5), ("interval", 2), ("count", 3)):
                connection.execute(f"SET tcp_keepalives_{name} = {value}")
            taken = connection.execute("SELECT pg_try_advisory_lock(%s)", [_HUB_LOCK]).fetchone()
        except psycopg.Error:
            connection.close()
            raise
        if taken == (True,):
            self._connection = connection
            return True
        connection.close()
        return False
