"""Polling of Slurm: one round of questions for all viewers, and none while nobody looks."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from dsportal.cluster.shared_view import SharedView
from dsportal.cluster.snapshot import Snapshot
from dsportal.cluster.words import SLURM_SILENT
from jupyterhub_gpu_slurm.errors import SlurmError
from jupyterhub_gpu_slurm.shared_answer import SharedAnswer
from jupyterhub_gpu_slurm.slurm.client import SlurmClient
from jupyterhub_gpu_slurm.slurm.records import GpuAllocation
from jupyterhub_gpu_slurm.slurm.watcher import told

log = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0
_SHARES_AGAIN_SECONDS = 120.0
_LONGEST_SILENCE_SECONDS = 20.0
_SHORTEST_PAUSE_SECONDS = 0.5


class Watch:
    """Keeps the newest view. Nobody in the service asks Slurm but by asking here."""

    def __init__(
        self, client: SlurmClient, mark: str, interval: float, patience: float = 2.0
    ) -> None:
        """Ask once in ``interval`` seconds at most; see `SharedAnswer` for ``patience``."""
        self._client = client
        self._mark = mark
        self._interval = interval
        # Each failure wakes all who follow: they would ask in turn, without a pause.
        retry_seconds = min(interval, _RETRY_SECONDS)
        self._answer = SharedAnswer(
            self._ask, interval, patience=patience, retry_seconds=retry_seconds
        )
        self._no_shares_before = -float("inf")
        self._renewed = asyncio.Event()

    async def shared(self) -> SharedView:
        """Return the cluster as of at most an interval ago.

        When Slurm does not answer, or is slow: the last snapshot, with words. Raises `SlurmError`
        when there is none.
        """
        return await self._answer.get()

    async def views(self) -> AsyncIterator[SharedView | None]:
        """Give the newest view and every later one.

        ``None`` is given after a while without any, so that who follows can say that it is still
        there.
        """
        last: SharedView | None = None
        while True:
            try:
                shared = await self.shared()
            except SlurmError:
                shared = None
            renewed = self._renewed
            yield None if shared is last else shared
            last = shared
            left = self._answer.asked_at + self._interval - time.monotonic()
            pause = max(_SHORTEST_PAUSE_SECONDS, min(left, _LONGEST_SILENCE_SECONDS))
            # Whoever is first asks for all, and the answer wakes all at once.
            try:
                async with asyncio.timeout(pause):
                    await renewed.wait()
            except TimeoutError:
                continue

    async def _ask(self) -> SharedView:
        try:
            return await told(self._new_view())
        except SlurmError as error:
            last = self._answer.latest
            if last is not None and last.trouble is not None:
                return last
            if self._answer.failure is None:
                log.warning("Slurm does not tell how the cluster is: %s", error.detail)
            if last is None:
                raise
            return SharedView(last.snapshot, self._mark, SLURM_SILENT)
        finally:
            self._renewed.set()
            self._renewed = asyncio.Event()

    async def _new_view(self) -> SharedView:
        cluster, jobs, shares = await asyncio.gather(
            self._client.cluster(), self._client.queue(), self._shares()
        )
        if shares is None:
            self._no_shares_before = time.monotonic() + _SHARES_AGAIN_SECONDS
        found = Snapshot(datetime.now(UTC), cluster, jobs, shares or {})
        last = self._answer.latest
        # Once, it may be a job that began or ended between the two questions.
        is_hidden = found.hides_jobs and last is not None and last.snapshot.hides_jobs
        return SharedView(found, self._mark, hides_jobs=is_hidden)

    async def _shares(self) -> dict[int, tuple[GpuAllocation, ...]] | None:
        """Return which job holds which GPU, ``None`` where this Slurm does not tell."""
        if time.monotonic() < self._no_shares_before:
            return {}
        try:
            return await self._client.gpu_allocations()
        except SlurmError as error:
            log.info("Slurm does not tell which job holds which GPU: %s", error.detail)
            return None
