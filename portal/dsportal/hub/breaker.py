"""The circuit breaker before the hub's database: while it is open, nobody asks.

The hub asks its database on the loop that serves everybody, so a database that does not answer must
not be asked there. A thread tries until it answers again.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tornado import web

log = logging.getLogger("JupyterHub")

TITLE = "The database does not answer"
WORDS = (
    "Running sessions are not affected. "
    "Try again in a moment; if that does not help, tell the administrators."
)

_GOOD_SECONDS = 0.5
_PATIENCE_SECONDS = 1.0
_PAUSE_SECONDS = 0.2
# Twice what the log of writes ahead grows to before it is written into the file: 1,000 pages of
# 4 KiB, by sqlite.org/pragma.html#pragma_wal_autocheckpoint, if nobody reads meanwhile.
_ROOM_BYTES = 8 << 20


class DatabaseAway(web.HTTPError):
    """The database is not asked now; the log says why, if there is a ``cause``."""

    def __init__(self, cause: str = "") -> None:
        super().__init__(503, WORDS, reason=TITLE)
        self._cause = cause

    def __str__(self) -> str:
        return self._cause or super().__str__()


class Breaker:
    """Says whether the database may be asked; while it may not, tries until it answers again."""

    def __init__(self, probe: Callable[[], None], *, is_asked_first: bool) -> None:
        """Try with ``probe``, which runs in a thread and raises while the database is away.

        ``is_asked_first``: whether requests try it before they ask on the loop.
        """
        self._probe = probe
        self.is_asked_first = is_asked_first
        self.is_open = False
        self.is_settling = False
        self.settle: Callable[[], bool] = lambda: True
        """Writes what is owed, once the database is back; says whether that went well."""
        self.check_writer: Callable[[], None] = lambda: None
        """Raises `DatabaseAway` while nothing is to be written, whatever the database says."""
        self._answered_at = -float("inf")
        # Its own: whatever else waits in a thread is no reason to think the database away.
        self._thread = ThreadPoolExecutor(1, "database-probe")
        self._probing: asyncio.Task[None] | None = None
        self._mending: asyncio.Task[None] | None = None

    @property
    def is_away(self) -> bool:
        """Whether the database is not to be asked."""
        return self.is_open and not self.is_settling

    def check(self) -> None:
        """Raise `DatabaseAway` while the database is not to be asked."""
        if self.is_away:
            raise DatabaseAway

    def open(self, reason: object) -> None:
        """Let nobody ask until the probe has an answer, and all that is owed is written."""
        if not self.is_open:
            self.is_open = True
            log.error("The database does not answer: %s", reason)
            self._mending = asyncio.get_running_loop().create_task(self._mend())

    async def is_back(self, seconds: float) -> bool:
        """Wait for the end of an absence, this long at most; say whether it has ended."""
        if self._mending is not None:
            await asyncio.wait({self._mending}, timeout=seconds)
        return not self.is_open

    async def wait(self) -> None:
        """Wait until the database is there, however long that takes."""
        while self._mending is not None and self.is_open:
            await asyncio.wait({self._mending})

    async def trouble(self) -> str | None:
        """Try the database, unless it answered just now; return why it does not answer."""
        if time.monotonic() - self._answered_at < _GOOD_SECONDS:
            return None
        probing = self._probe_once()
        await asyncio.wait({probing}, timeout=_PATIENCE_SECONDS)
        if not probing.done():
            return f"no word in {_PATIENCE_SECONDS:g} s"
        error = probing.exception()
        return None if error is None else str(error) or type(error).__name__

    def _probe_once(self) -> "asyncio.Task[None]":
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._ask())
        return self._probing

    async def _ask(self) -> None:
        asked_at = time.monotonic()
        self.check_writer()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._probe)
        self._answered_at = asked_at

    async def _mend(self) -> None:
        while True:
            probing = self._probe_once()
            await asyncio.wait({probing})
            if probing.exception() is None and self._is_settled():
                self.is_open = False
                log.warning("The database answers again")
                return
            await asyncio.sleep(_PAUSE_SECONDS)

    def _is_settled(self) -> bool:
        self.is_settling = True
        try:
            return self.settle()
        finally:
            self.is_settling = False


def room_check(folder: str, room_bytes: int = _ROOM_BYTES) -> Callable[[], None]:
    """Return what raises `DatabaseAway` while the folder's disk is full, or nearly.

    SQLite notices only when it has been sent a change, which is then undone, and so lost to the
    hub. Space that is reserved for root does not count.
    """

    def check() -> None:
        disk = os.statvfs(folder)
        free = disk.f_bavail * disk.f_frsize
        if free < room_bytes:
            raise DatabaseAway(f"the disk of {folder} is full ({free >> 20} MiB are free)")

    return check
