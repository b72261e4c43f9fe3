"""One question for all who ask, and its answer for a while."""

import asyncio

import pytest

from jupyterhub_gpu_slurm.shared_answer import SharedAnswer, SharedAnswers
from tests.unit.loops import in_a_loop


class Source:
    """Counts how often it is asked; answers when it is let, or fails."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked = 0
        self.fails = False
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def ask(self) -> int:
        self.asked += 1
        await self.may_answer.wait()
        if self.fails:
            raise ValueError("no")
        return self.asked

    def shared(self, patience: float | None = None) -> SharedAnswer[int]:
        return SharedAnswer(self.ask, 10.0, patience=patience, now=lambda: self.now)


@in_a_loop
async def test_all_who_ask_meanwhile_get_one_answer() -> None:
    source = Source()
    answer = source.shared()
    assert await asyncio.gather(*(answer.get() for _ in range(50))) == [1] * 50


@pytest.mark.parametrize(("later", "asked"), [(9.9, 1), (10.0, 2), (-1.0, 2)])
@in_a_loop
async def test_an_answer_is_good_for_a_while(later: float, asked: int) -> None:
    source = Source()
    answer = source.shared()
    await answer.get()
    source.now += later
    assert await answer.get() == asked


@in_a_loop
async def test_who_is_in_a_hurry_gets_a_newer_one() -> None:
    source = Source()
    answer = source.shared()
    await answer.get()
    source.now += 1.0
    assert [await answer.get(max_age=2.0), await answer.get(max_age=0.0)] == [1, 2]


@in_a_loop
async def test_a_late_answer_leaves_the_older_one_in_place_and_goes_on() -> None:
    source = Source()
    answer = source.shared(patience=0.01)
    await answer.get()
    source.now += 20.0
    source.may_answer.clear()
    assert await answer.get() == 1
    source.may_answer.set()
    assert await answer.get() == 2
    assert source.asked == 2


@in_a_loop
async def test_the_first_answer_is_waited_for_with_any_patience() -> None:
    source = Source()
    source.may_answer.clear()
    waiting = asyncio.create_task(source.shared(patience=0.0).get())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    source.may_answer.set()
    assert await waiting == 1


@in_a_loop
async def test_a_failure_is_everybodys_and_the_next_one_asks_again() -> None:
    source = Source()
    source.fails = True
    answer = source.shared()
    found = await asyncio.gather(answer.get(), answer.get(), return_exceptions=True)
    assert [str(error) for error in found] == ["no", "no"]
    assert source.asked == 1
    source.fails = False
    assert await answer.get() == 2


@in_a_loop
async def test_a_failure_after_an_answer_is_not_asked_again_at_once() -> None:
    source = Source()
    answer = source.shared()
    await answer.get()
    source.now, source.fails = source.now + 10.0, True
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            await answer.get()
    assert (source.asked, answer.latest) == (2, 1)


@in_a_loop
async def test_a_failure_may_be_remembered_for_a_time_of_its_own() -> None:
    source = Source()
    source.fails = True
    answer = SharedAnswer(source.ask, 10.0, retry_seconds=3.0, now=lambda: source.now)
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            await answer.get()
    assert source.asked == 1
    source.now, source.fails = source.now + 3.0, False
    assert await answer.get() == 2


@in_a_loop
async def test_who_goes_away_takes_the_answer_from_nobody() -> None:
    source = Source()
    source.may_answer.clear()
    answer = source.shared()
    one, other = (asyncio.create_task(answer.get()) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    source.may_answer.set()
    assert await other == 1


@in_a_loop
async def test_what_is_known_meanwhile_is_newer_than_the_answer_to_an_earlier_question() -> None:
    source = Source()
    source.may_answer.clear()
    answer = source.shared()
    asking = asyncio.create_task(answer.get())
    await asyncio.sleep(0)
    answer.know(7)
    source.may_answer.set()
    assert [await asking, await answer.get(), source.asked] == [7, 7, 1]
    source.now += 10.0
    assert await answer.get() == 2


@in_a_loop
async def test_an_expired_answer_is_asked_for_again() -> None:
    source = Source()
    answer = source.shared()
    await answer.get()
    answer.expire()
    assert await answer.get() == 2


@pytest.mark.parametrize("had_one", [False, True])
@in_a_loop
async def test_an_answer_that_expires_while_it_is_asked_for_is_asked_for_again(
    had_one: bool,
) -> None:
    source = Source()
    answer = source.shared()
    if had_one:
        await answer.get()
        source.now += 10.0
    source.may_answer.clear()
    before = asyncio.create_task(answer.get())
    await asyncio.sleep(0)
    answer.expire()
    after = asyncio.create_task(answer.get())
    await asyncio.sleep(0)
    source.may_answer.set()
    newest = 3 if had_one else 2
    assert [await before, await after, await answer.get()] == [newest] * 3


@in_a_loop
async def test_a_refresh_waits_for_nothing_and_asks_only_when_it_is_time() -> None:
    source = Source()
    answer = source.shared()
    answer.refresh()
    answer.refresh()
    assert answer.latest is None
    assert await answer.get() == 1
    answer.refresh()
    await asyncio.sleep(0)
    assert source.asked == 1


@in_a_loop
async def test_of_many_things_the_last_ones_are_remembered() -> None:
    asked: list[str] = []

    async def ask(key: str) -> str:
        asked.append(key)
        return key

    answers = SharedAnswers(ask, 10.0, most=2)
    for key in "abaca":
        assert await answers.get(key) == key
    assert asked == ["a", "b", "c"]
