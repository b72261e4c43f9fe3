"""The recorder of sessions: stores what the hub's spawners report, and reads it for its pages."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from dsportal.usage.record import PastSession, UsageRecord
from jupyterhub_gpu_slurm.session.observation import SessionNews

log = logging.getLogger(__name__)

_AGAIN = timedelta(seconds=60)
_GATHER_SECONDS = 10.0
_PRUNE_EVERY = timedelta(hours=1)
_MOST_WAITING = 10_000
_SETTLING_SECONDS = 2.0
_T = TypeVar("_T")


class Recorder:
    """Writes in a thread, all that has gathered at once.

    A session is seen every few seconds; once in a minute is enough for the record, and one write
    for all that were seen within some seconds. Starts and ends are written at once. When the file
    cannot be written, what was told waits for the next try.
    """

    def __init__(self, record: UsageRecord, keep: timedelta) -> None:
        self._record = record
        self._keep = keep
        self._waiting: list[SessionNews] = []
        self._taken_at: dict[str, datetime] = {}
        self._writing: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._pruned_at: datetime | None = None
        self._is_failing = False

    def observer(self) -> Callable[[SessionNews], None]:
        """Return what `GpuSlurmSpawner.session_observer` wants.

        A function of its own: of a method, the configuration would copy this object along.
        """
        return lambda news: self.take(news)

    def take(self, news: SessionNews) -> None:
        """Take it, and return at once; must be called on the hub's event loop."""
        is_known = news.ending is None and news.session_id in self._taken_at
        if not self._is_wanted(news):
            return
        self._waiting.append(news)
        if not is_known:
            self._hurry.set()
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def past(self, user: str, most: int) -> list[PastSession]:
        """Return a user's sessions that are over, the last to end first; none while unreadable."""
        return await self._read(lambda: self._record.past(user, most)) or []

    async def ended(self, user: str, job_id: int) -> PastSession | None:
        """Return one of a user's sessions, if it is over and known."""
        return await self._read(lambda: self._record.ended(user, job_id))

    async def _read(self, question: Callable[[], _T]) -> _T | None:
        # A session that ended just now is the one that its user looks for.
        await self.settled()
        try:
            return await asyncio.to_thread(question)
        except sqlite3.Error as error:
            log.warning("The record of sessions cannot be read: %s", error)
            return None

    async def settled(self) -> None:
        """Wait until what was told is in the file, so that it can be read; not for a slow disk."""
        if self._writing is not None and not self._writing.done():
            self._hurry.set()
            await asyncio.wait({self._writing}, timeout=_SETTLING_SECONDS)

    def _is_wanted(self, news: SessionNews) -> bool:
        if news.ending is not None:
            self._taken_at.pop(news.session_id, None)
            return True
        taken_at = self._taken_at.get(news.session_id)
        # A clock of the day may be set back.
        if taken_at is not None and timedelta(0) <= news.seen - taken_at < _AGAIN:
            return False
        self._taken_at[news.session_id] = news.seen
        return True

    async def _write(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_GATHER_SECONDS):
                await self._hurry.wait()
        # What comes during a write follows at once: somebody may wait for the end of this task.
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._store, batch)
            except (sqlite3.Error, OSError) as error:
                if not self._is_failing:
                    log.warning("The record of sessions cannot be written: %s", error)
                self._is_failing = True
                self._waiting = [*batch, *self._waiting][-_MOST_WAITING:]
                return
            if self._is_failing:
                log.warning("The record of sessions is written again")
            self._is_failing = False
        self._hurry.clear()

    def _store(self, batch: list[SessionNews]) -> None:
        self._record.write(batch)
        now = datetime.now(UTC)
        if self._pruned_at is None or abs(now - self._pruned_at) > _PRUNE_EVERY:
            self._record.prune(now, self._keep)
            self._pruned_at = now
