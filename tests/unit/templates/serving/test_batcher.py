"""Requests that arrive together are computed together."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from batcher import Batcher


class Seen:
    """What was computed together."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[int]]] = []

    def twice(self, key: str, items: Sequence[int]) -> list[int | Exception]:
        self.batches.append((key, list(items)))
        if key == "broken":
            raise MemoryError("too large")
        return [ValueError("odd one out") if item == 13 else 2 * item for item in items]


def batcher_of(seen: Seen, most: int = 4) -> Batcher[str, int, int]:
    return Batcher(seen.twice, ThreadPoolExecutor(1), most, 0.01)


def test_what_arrives_together_is_one_batch_up_to_the_most() -> None:
    seen = Seen()
    batcher = batcher_of(seen)

    async def ask() -> list[int]:
        return await asyncio.gather(*(batcher.ask("a", item) for item in range(6)))

    assert asyncio.run(ask()) == [0, 2, 4, 6, 8, 10]
    assert seen.batches == [("a", [0, 1, 2, 3]), ("a", [4, 5])]
    assert (batcher.requests, batcher.batches) == (6, 2)


def test_what_is_asked_otherwise_is_computed_apart() -> None:
    seen = Seen()
    batcher = batcher_of(seen)

    async def ask() -> list[int]:
        asked = [("a", 1), ("b", 2), ("a", 3)]
        return await asyncio.gather(*(batcher.ask(key, item) for key, item in asked))

    assert asyncio.run(ask()) == [2, 4, 6]
    assert seen.batches == [("a", [1, 3]), ("b", [2])]


def test_one_item_that_fails_leaves_the_others() -> None:
    async def ask() -> list[int | BaseException]:
        batcher = batcher_of(Seen())
        asking = [batcher.ask("a", item) for item in (12, 13, 14)]
        return await asyncio.gather(*asking, return_exceptions=True)

    first, second, third = asyncio.run(ask())
    assert (first, third) == (24, 28)
    assert isinstance(second, ValueError)


def test_a_batch_that_fails_is_told_to_each_and_the_next_is_computed() -> None:
    async def ask() -> int:
        batcher = batcher_of(Seen())
        with pytest.raises(MemoryError, match="too large"):
            await batcher.ask("broken", 1)
        return await batcher.ask("a", 1)

    assert asyncio.run(ask()) == 2


def test_who_has_gone_is_not_computed_for() -> None:
    seen = Seen()

    async def ask() -> int:
        batcher = batcher_of(seen)
        gone = asyncio.create_task(batcher.ask("a", 1))
        await asyncio.sleep(0)
        gone.cancel()
        return await batcher.ask("a", 2)

    assert asyncio.run(ask()) == 4
    assert seen.batches == [("a", [2])]
