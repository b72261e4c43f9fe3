"""The hub's connections to PostgreSQL; imported only where a site has one."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from dsportal.hub.database import ANSWER_SECONDS

CONNECT_SECONDS = 2


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


def options(url: str, check: Callable[[], None]) -> dict[str, Any]:
    """Return how the hub reaches PostgreSQL, unless ``check`` raises."""

    def checked() -> BoundedConnection:
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
