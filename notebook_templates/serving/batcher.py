"""Requests that arrive together are computed together: a network takes many for little more time.

While a batch is computed, those that arrive are gathered for the next; one that finds nothing
running waits for others a few milliseconds.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass
class _Waiting(Generic[Key, Item, Answer]):
    key: Key
    item: Item
    answer: "asyncio.Future[Answer]"


class Batcher(Generic[Key, Item, Answer]):
    """Gathers what waits, and has it computed one batch after the other."""

    def __init__(
        self,
        compute: Callable[[Key, Sequence[Item]], Sequence[Answer | Exception]],
        executor: Executor,
        most: int,
        wait_seconds: float,
    ) -> None:
        """``compute`` runs in ``executor`` with at most ``most`` items of one key.

        It returns an answer for each, or the exception that this one's request ends with.
        """
        self._compute, self._executor = compute, executor
        self._most, self._wait_seconds = most, wait_seconds
        self._waiting: list[_Waiting[Key, Item, Answer]] = []
        self._working: asyncio.Task[None] | None = None
        self.requests = 0
        """How many have been computed, or have failed."""
        self.batches = 0

    async def ask(self, key: Key, item: Item) -> Answer:
        """Return the answer to one item; those of the same key may be computed together."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(key, item, answer))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        await asyncio.sleep(self._wait_seconds)
        while batch := self._next_batch():
            items = [one.item for one in batch]
            loop = asyncio.get_running_loop()
            try:
                answers = await loop.run_in_executor(
                    self._executor, self._compute, batch[0].key, items
                )
            except Exception as error:  # noqa: BLE001  # each request is told
                answers = [error] * len(batch)
            self.requests, self.batches = self.requests + len(batch), self.batches + 1
            for one, answer in zip(batch, answers, strict=True):
                if one.answer.done():
                    continue  # whoever asked has gone
                if isinstance(answer, Exception):
                    one.answer.set_exception(answer)
                else:
                    one.answer.set_result(answer)

    def _next_batch(self) -> list[_Waiting[Key, Item, Answer]]:
        self._waiting = [one for one in self._waiting if not one.answer.done()]
        if not self._waiting:
            return []
        key = self._waiting[0].key
        batch = [one for one in self._waiting if one.key == key][: self._most]
        self._waiting = [one for one in self._waiting if one not in batch]
        return batch
