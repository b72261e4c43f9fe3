"""A concurrency limiter and a rate limiter."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jupyterhub_gpu_slurm.defaults import SlurmDefaults


class ConcurrencyLimiter:
    """Lets a few through at once, in the order in which they came.

    It is there for programs that are hard work for the machine at their start, and then perhaps
    wait for somebody else: who takes longer than ``patience`` seconds makes place for the next, so
    that a scheduler that does not answer one user keeps nobody else waiting.
    """

    def __init__(
        self, at_once: int = SlurmDefaults.launches_at_once, patience: float = 2.0
    ) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._patience = patience

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[None]:
        """Wait for a free place and hold it during the block, for so long as there is patience."""
        await self._free.acquire()
        late = asyncio.get_running_loop().call_later(self._patience, self._free.release)
        try:
            yield
        finally:
            if late.when() > asyncio.get_running_loop().time():
                late.cancel()
                self._free.release()


class RateLimiter:
    """Lets one through after the other, at least ``gap`` seconds apart, in the order they came.

    While the event loop is late by more than ``gap``, it has other work: then the next one waits
    again, at most ``waits`` times, and once only after ``patience`` seconds in the queue: a loop
    that is always late must not hold a class up for minutes.
    """

    def __init__(self, gap: float = 0.025, waits: int = 4, patience: float = 5.0) -> None:
        self._gap = gap
        self._waits = waits
        self._patience = patience
        self._turn = asyncio.Lock()
        self._last = -gap

    async def wait(self) -> None:
        """Return when it is the caller's turn; at once where nobody came just before."""
        loop = asyncio.get_running_loop()
        came = loop.time()
        async with self._turn:
            for _ in range(self._waits):
                due = max(loop.time(), self._last + self._gap)
                await asyncio.sleep(due - loop.time())
                late = loop.time() - due
                self._last = loop.time()
                if late < self._gap or self._last - came > self._patience:
                    break
