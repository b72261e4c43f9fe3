"""A cache that asks once for everybody: calls at the same time share one query (single flight).

Whoever asks while the question is under way waits for that one; whoever asks soon after it gets the
same answer. Standard library only, so that sessions use it, too.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class SharedAnswer(Generic[T]):
    """The newest answer to a question."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[T]],
        good_seconds: float,
        *,
        patience: float | None = None,
        retry_seconds: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``ask`` finds an answer, which is good for ``good_seconds`` after it has come.

        ``patience``: for how many seconds a new one is waited for while there is an older one;
        ``None``: until it is there. ``retry_seconds``: how long after a failure it is asked again;
        ``None``: at once where there has been no answer yet, else as after an answer.
        """
        self._ask = ask
        self._good_seconds, self._patience, self._now = good_seconds, patience, now
        self._retry_seconds = retry_seconds
        self._asking: asyncio.Task[None] | None = None
        self.asked_at = -float("inf")
        """When the last question ended, well or not, by the clock ``now``."""
        self.latest: T | None = None
        """The last answer, however old; ``None`` before the first."""
        self.failure: Exception | None = None
        """What the last question failed with; ``None`` where it was answered."""

    async def get(self, max_age: float | None = None) -> T:
        """Return an answer as of at most ``max_age`` seconds ago (default: ``good_seconds``).

        An older one where a new one is late. Raises what the last question failed with.
        """
        if self._is_stale(self._good_seconds if max_age is None else max_age):
            patience = None if self.latest is None else self._patience
            await asyncio.wait({self._begin()}, timeout=patience)
        if self.failure is not None:
            raise self.failure
        if self.latest is None:
            raise TimeoutError("The question was cancelled")
        return self.latest

    def refresh(self) -> None:
        """Begin to ask where the last answer is too old, and wait for nothing."""
        if self._is_stale(self._good_seconds):
            self._begin()

    def know(self, answer: T) -> None:
        """Take an answer that came by another way; a question under way was asked before it."""
        self.latest, self.failure, self.asked_at = answer, None, self._now()
        self._asking = None

    def expire(self) -> None:
        """Have whoever asks from now on get a new answer, also while a question is under way."""
        self.asked_at = -float("inf")
        self._asking = None

    def _is_stale(self, max_age: float) -> bool:
        good = max_age
        if self.failure is not None and self._retry_seconds is not None:
            good = self._retry_seconds
        elif self.latest is None:
            good = 0.0
        # A clock of the day may be set back.
        return not 0 <= self._now() - self.asked_at < good

    def _begin(self) -> asyncio.Task[None]:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._answer())
        return self._asking

    async def _answer(self) -> None:
        answer = self.latest
        failure: Exception | None = None
        try:
            answer = await self._ask()
        except Exception as error:  # noqa: BLE001 - whoever asked gets it
            failure = error
        if self._asking is asyncio.current_task():
            self.latest, self.failure, self.asked_at = answer, failure, self._now()
        elif self._is_stale(self._good_seconds):
            # It has expired: whoever waits gets the next one.
            await asyncio.wait({self._begin()})


class SharedAnswers(Generic[K, T]):
    """Answers to the same question about several things, the last ``most`` of them."""

    def __init__(
        self,
        ask: Callable[[K], Awaitable[T]],
        good_seconds: float,
        *,
        most: int,
        retry_seconds: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """See `SharedAnswer`."""
        self._ask, self._good_seconds, self._most, self._now = ask, good_seconds, most, now
        self._retry_seconds = retry_seconds
        self._answers: dict[K, SharedAnswer[T]] = {}

    async def get(self, key: K) -> T:
        """Return the answer about ``key``; see `SharedAnswer.get`."""
        answer = self._answers.pop(key, None) or SharedAnswer(
            lambda: self._ask(key),
            self._good_seconds,
            retry_seconds=self._retry_seconds,
            now=self._now,
        )
        self._answers[key] = answer
        while len(self._answers) > self._most:
            del self._answers[next(iter(self._answers))]
        return await answer.get()
