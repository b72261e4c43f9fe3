"""Leader election among a hub's machines: the one that holds the database's lock runs the hub.

Every machine starts the hub; those that do not get the lock wait before they open any port. When
the one that ran is gone, the database frees its lock, and another takes over. Sessions are Slurm's
jobs: they go on meanwhile, and the hub that follows knows them from the database.

A hub whose connection breaks, because the database was restarted or the network failed for a
moment, takes the lock again as soon as it can. The others leave it time for that: whoever has been
waiting only takes a lock that has stayed free for `GRACE_SECONDS`, so a hub that is restarted stays
where it is. A hub that has not seen for some seconds that the lock is its own writes nothing into
the database, and ends once it sees that another has it.
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
GHOST_SECONDS = 12.0
"""For how long a connection of ours that has broken may still have the lock, as the server sees."""
EXIT_CODE = 75  # EX_TEMPFAIL of sysexits.h: started again, it waits


class LockUnknown(Exception):
    """The database did not say whose the lock is."""


class Lock(Protocol):
    """A lock that one process of all machines can hold. Each method raises `LockUnknown`."""

    def is_held(self) -> bool:
        """Take it, or see that it still is ours; false: another has it."""

    def is_free(self) -> bool:
        """Say whether nobody has it, and leave it as it is."""

    def end_others(self) -> None:
        """End what the hub that had it before may still have open in the database."""


class Leadership:
    """Leader election: waits until this process may run the hub, and ends it when it may not."""

    def __init__(
        self,
        lock: Lock,
        *,
        seen: Callable[[], object] = lambda: None,
        end: Callable[[int], object] = os._exit,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``seen`` is called whenever the lock was seen to be ours.

        ``end`` ends this process at once: what is left to do is the other hub's.
        """
        self._lock, self._seen, self._end = lock, seen, end
        self._clock, self._sleep = clock, sleep
        self._seen_at = -float("inf")
        self._refused_at: float | None = None

    def wait(self) -> None:
        """Return when the lock is ours, however long that takes."""
        if self._is_ours():
            return
        log.warning("Another machine is running the hub; this one is on standby")
        while True:
            self._wait_until_free()
            if self._is_ours() and self._has_ended_others():
                break
        log.warning("The other machine's hub is gone; this machine is taking over")

    def keep(self) -> None:
        """Look after the lock from now on, in a thread."""
        threading.Thread(target=self._look_on, name="leadership", daemon=True).start()

    def look(self) -> None:
        """See whether the lock is still ours; end this process where another has it."""
        try:
            is_ours = self._ask()
        except LockUnknown:
            self._refused_at = None
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
            raise DatabaseAway("this hub's lock was not confirmed just now")

    def _look_on(self) -> None:
        while True:
            self._sleep(PAUSE_SECONDS)
            try:
                self.look()
            except Exception:
                # Nobody would look after the lock any more.
                log.exception("The lock of the hub is lost; exiting")
                self._end(EXIT_CODE)

    def _wait_until_free(self) -> None:
        free_since: float | None = None
        while free_since is None or self._clock() - free_since < GRACE_SECONDS:
            self._sleep(PAUSE_SECONDS)
            try:
                is_free = self._lock.is_free()
            except LockUnknown:
                is_free = False
            if not is_free:
                free_since = None
            elif free_since is None:
                free_since = self._clock()

    def _is_ours(self) -> bool:
        try:
            return self._ask()
        except LockUnknown as error:
            log.error("The database does not answer: %s", error)
            return False

    def _has_ended_others(self) -> bool:
        """End the connections of the hub before; false: ours broke, and the lock is lost."""
        try:
            self._lock.end_others()
        except LockUnknown as error:
            log.error("The database does not answer: %s", error)
            return False
        return True

    def _ask(self) -> bool:
        asked_at = self._clock()
        is_ours = self._lock.is_held()
        self._seen_at = asked_at if is_ours else -float("inf")
        if is_ours:
            self._seen()
        return is_ours
