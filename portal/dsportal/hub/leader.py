"""Which of several machines runs the hub: the one that holds a lock in the hub's database.

Every machine starts the hub; those that do not get the lock wait before they listen anywhere. When
the one that ran has gone, the database frees its lock, and another takes its place. Sessions are
Slurm's jobs: they go on meanwhile, and the hub that follows knows them from the database.

A hub whose connection breaks, because the database was restarted or the network failed for a
moment, takes the lock again as soon as it can. The others leave it time for that: whoever has been
waiting only takes a lock that stays free for `GRACE_SECONDS`, so a hub that is restarted stays
where it is. A hub that has not seen for some seconds that the lock is its own opens no connection
to the database, and ends once it sees that another has it: two never write.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Protocol

from dsportal.hub.breaker import DatabaseAway

log = logging.getLogger("JupyterHub")

GRACE_SECONDS = 15.0
PAUSE_SECONDS = 2.0
CERTAIN_SECONDS = 10.0
"""For how long the lock counts as ours after it was seen; others wait longer for a free one."""
GHOST_SECONDS = 5.0
"""For how long a connection of ours that has broken may still have the lock, as the server sees."""
EXIT_CODE = 75  # EX_TEMPFAIL of sysexits.h: started again, it waits


class LockUnknown(Exception):
    """The database did not say whose the lock is."""


class Lock(Protocol):
    """What one process of all machines can have."""

    def is_held(self) -> bool:
        """Take it, or see that it still is ours; false: another has it. Raises `LockUnknown`."""

    def release(self) -> None:
        """Let it go."""


class Leadership:
    """Whether it is this process's turn to be the hub."""

    def __init__(
        self,
        lock: Lock,
        *,
        end: Callable[[int], object] = os._exit,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``end`` ends this process at once: what is left to do is the other hub's."""
        self._lock, self._end, self._clock, self._sleep = lock, end, clock, sleep
        self._seen_at = -float("inf")
        self._refused_at: float | None = None

    def wait(self) -> None:
        """Return when the lock is ours, however long that takes."""
        if self._takes():
            return
        log.warning("Another machine is running the hub; this one is on standby")
        while True:
            self._sleep(PAUSE_SECONDS)
            if self._takes():
                # Who had it may only have been restarted.
                self._lock.release()
                self._sleep(GRACE_SECONDS)
                if self._takes():
                    break
        log.warning("The other machine's hub is gone; this machine is taking over")

    def keep(self) -> None:
        """Look after the lock from now on, in a thread."""
        threading.Thread(target=self._look_on, name="leadership", daemon=True).start()

    def look(self) -> None:
        """See whether the lock is still ours; end this process where another has it."""
        try:
            is_ours = self._asks()
        except LockUnknown:
            return  # whoever needs the database tells of it
        if is_ours:
            self._refused_at = None
        elif self._refused_at is None:
            self._refused_at = self._clock()
        elif self._clock() - self._refused_at >= GHOST_SECONDS:
            log.critical("Another machine has taken over the hub; exiting")
            self._end(EXIT_CODE)

    def check(self) -> None:
        """Raise `DatabaseAway` unless the lock was seen to be ours a moment ago."""
        if self._clock() - self._seen_at > CERTAIN_SECONDS:
            raise DatabaseAway

    def _look_on(self) -> None:
        while True:
            self._sleep(PAUSE_SECONDS)
            self.look()

    def _takes(self) -> bool:
        """Take the lock, or find that another has it, once the database says so."""
        is_told = False
        while True:
            try:
                return self._asks()
            except LockUnknown as error:
                if not is_told:
                    log.error("The database does not answer: %s", error)
                is_told = True
            self._sleep(PAUSE_SECONDS)

    def _asks(self) -> bool:
        asked_at = self._clock()
        is_ours = self._lock.is_held()
        if is_ours:
            self._seen_at = asked_at
        return is_ours
