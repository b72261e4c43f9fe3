"""One round of questions to Slurm for all who look, and none while nobody does."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from dsportal.cluster.shared_view import SharedView
from dsportal.cluster.snapshot import Snapshot
from jupyterhub_gpu_slurm.errors import SlurmError
from jupyterhub_gpu_slurm.slurm.client import SlurmClient
from jupyterhub_gpu_slurm.slurm.records import GpuAllocation
from jupyterhub_gpu_slurm.slurm.watcher import told

log = logging.getLogger(__name__)

_SHARES_AGAIN_SECONDS = 120.0
_LONGEST_SILENCE_SECONDS = 20.0
_SHORTEST_PAUSE_SECONDS = 0.5


class Watch:
    """Keeps the newest shared. Nobody in the service asks Slurm but by asking here."""

    def __init__(
        self, client: SlurmClient, mark: str, interval: float, patience: float = 2.0
    ) -> None:
        """Ask once in ``interval`` seconds at most.

        Who asks waits ``patience`` seconds for a new shared while there is an older one.
        """
        self._client = client
        self._mark = mark
        self._interval = interval
        self._patience = patience
        self._edition: SharedView | None = None
        self._asked_at = -float("inf")
        self._asking: asyncio.Task[None] | None = None
        self._failure: SlurmError | None = None
        self._no_shares_before = -float("inf")
        self._renewed = asyncio.Event()
        self.rounds = 0
        """How many rounds of questions there were."""

    async def shared(self) -> SharedView:
        """Return the cluster as of at most an interval ago.

        When Slurm does not answer, or is slow: the last snapshot, with words. Raises `SlurmError`
        when there is none.
        """
        if self._edition is None or time.monotonic() - self._asked_at >= self._interval:
            asking = self._ask_once()
            timeout = None if self._edition is None else self._patience
            await asyncio.wait({asking}, timeout=timeout)
        if self._edition is None:
            raise self._failure or SlurmError("Slurm does not tell how the cluster is.")
        return self._edition

    async def views(self) -> AsyncIterator[SharedView | None]:
        """Give the newest shared and every later one.

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
            left = self._asked_at + self._interval - time.monotonic()
            pause = max(_SHORTEST_PAUSE_SECONDS, min(left, _LONGEST_SILENCE_SECONDS))
            # Whoever is first asks for all, and the answer wakes all at once.
            try:
                async with asyncio.timeout(pause):
                    await renewed.wait()
            except TimeoutError:
                continue

    def _ask_once(self) -> asyncio.Task[None]:
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        return self._asking

    async def _ask(self) -> None:
        self.rounds += 1
        try:
            self._edition, self._failure = await told(self._new_edition()), None
        except SlurmError as error:
            self._note(error)
        finally:
            self._asked_at, self._asking = time.monotonic(), None
            self._renewed.set()
            self._renewed = asyncio.Event()

    async def _new_edition(self) -> SharedView:
        cluster, jobs, shares = await asyncio.gather(
            self._client.cluster(), self._client.queue(), self._shares()
        )
        if shares is None:
            self._no_shares_before = time.monotonic() + _SHARES_AGAIN_SECONDS
        return SharedView(Snapshot(datetime.now(UTC), cluster, jobs, shares or {}), self._mark)

    def _note(self, error: SlurmError) -> None:
        if self._failure is None:
            log.warning("Slurm does not tell how the cluster is: %s", error.detail)
        self._failure = error
        if self._edition is not None and self._edition.trouble is None:
            words = "Slurm does not answer at the moment; this is how the cluster was then."
            self._edition = SharedView(self._edition.snapshot, self._mark, words)

    async def _shares(self) -> dict[int, tuple[GpuAllocation, ...]] | None:
        """Return which job holds which GPU, ``None`` where this Slurm does not tell."""
        if time.monotonic() < self._no_shares_before:
            return {}
        try:
            return await self._client.gpu_shares()
        except SlurmError as error:
            log.info("Slurm does not tell which job holds which GPU: %s", error.detail)
            return None
