import asyncio

import pytest

from jupyterhub_gpu_slurm.slurm.limiters import ConcurrencyLimiter, RateLimiter
from tests.unit.loops import without_waiting


async def most_at_once(limiter: ConcurrencyLimiter, comers: int) -> int:
    """Let many come; return how many were inside together at most."""
    inside, most = 0, 0

    async def come() -> None:
        nonlocal inside, most
        async with limiter.passage():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(come() for _ in range(comers)))
    return most


def test_no_more_than_allowed_are_inside_at_once() -> None:
    async def try_it() -> int:
        return await most_at_once(ConcurrencyLimiter(3, patience=60), 50)

    assert asyncio.run(try_it()) == 3


def test_who_takes_long_makes_place_for_the_next() -> None:
    async def try_it() -> None:
        limiter, stuck = ConcurrencyLimiter(1, patience=0.01), asyncio.Event()

        async def never_done() -> None:
            async with limiter.passage():
                await stuck.wait()

        async with asyncio.timeout(30):
            waiting = asyncio.create_task(never_done())
            await asyncio.sleep(0)
            async with limiter.passage():
                stuck.set()
            await waiting

    asyncio.run(try_it())


def test_who_took_long_gives_its_place_back_only_once() -> None:
    async def try_it() -> int:
        limiter, left = ConcurrencyLimiter(1, patience=0.001), asyncio.Event()

        async def slow() -> None:
            async with limiter.passage():
                await left.wait()

        waiting = asyncio.create_task(slow())
        await asyncio.sleep(0)
        async with limiter.passage():
            left.set()
            await waiting
        return await most_at_once(ConcurrencyLimiter(1), 1) + await most_at_once(limiter, 20)

    assert asyncio.run(try_it()) == 2


def test_a_failure_inside_gives_the_place_back() -> None:
    async def try_it() -> None:
        limiter = ConcurrencyLimiter(1, patience=60)
        for _ in range(3):
            try:
                async with asyncio.timeout(30), limiter.passage():
                    raise ValueError
            except ValueError:
                pass

    asyncio.run(try_it())


def test_turns_are_taken_in_order_and_apart() -> None:
    async def try_it() -> list[tuple[int, float]]:
        turns, taken = RateLimiter(gap=0.01), []

        async def take(number: int) -> None:
            await turns.wait()
            taken.append((number, asyncio.get_running_loop().time()))

        await asyncio.gather(*(take(number) for number in range(5)))
        return taken

    with asyncio.Runner(loop_factory=without_waiting) as runner:
        taken = runner.run(try_it())
    assert [number for number, _ in taken] == [0, 1, 2, 3, 4]
    # The first goes at once.
    assert [at for _, at in taken] == pytest.approx([0, 0.01, 0.02, 0.03, 0.04])


def test_a_loop_that_is_late_is_given_time_but_not_for_ever() -> None:
    async def turns_of_work_before_the_next(many: int) -> int:
        loop, done = asyncio.get_running_loop(), 0

        async def work() -> None:
            nonlocal done
            for _ in range(many):
                loop._selector.now += 0.05  # type: ignore[attr-defined]
                done += 1
                await asyncio.sleep(0)

        working = asyncio.create_task(work())
        await RateLimiter(gap=0.01, waits=4).wait()
        found = done
        working.cancel()
        return found

    with asyncio.Runner(loop_factory=without_waiting) as runner:
        assert runner.run(turns_of_work_before_the_next(3)) == 3
        assert runner.run(turns_of_work_before_the_next(1000)) < 20


def test_a_loop_that_is_always_late_does_not_hold_a_class_up() -> None:
    async def seconds_of(comers: int) -> float:
        loop = asyncio.get_running_loop()

        async def work() -> None:
            while True:
                loop._selector.now += 0.06  # type: ignore[attr-defined]
                await asyncio.sleep(0)

        working = asyncio.create_task(work())
        begun, limiter = loop.time(), RateLimiter()
        await asyncio.gather(*(limiter.wait() for _ in range(comers)))
        working.cancel()
        return loop.time() - begun

    with asyncio.Runner(loop_factory=without_waiting) as runner:
        # With four turns each it would be more than a minute.
        assert runner.run(seconds_of(100)) < 30
