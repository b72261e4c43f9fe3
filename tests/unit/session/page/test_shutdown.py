import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from dsportal.session.page.shutdown import EVENT, ShutdownNotice


class Bus:
    """An event bus that calls back when something is said on it."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.said: list[str] = []

    def register_event_schema(self, schema: dict[str, Any]) -> None:
        self.schemas.append(schema)

    def emit(self, *, schema_id: str, data: dict[str, Any]) -> None:
        self.said.append(schema_id)


def test_without_an_answer_the_server_does_not_wait_long() -> None:
    bus = Bus()
    shutdown_notice = ShutdownNotice(bus)
    asyncio.run(shutdown_notice.say(answer_seconds=0.01, saving_seconds=3600))
    assert bus.said == [EVENT]
    assert [schema["$id"] for schema in bus.schemas] == [EVENT]


Pages = Callable[[ShutdownNotice, list[str]], Awaitable[None]]


def order_with(pages: Pages) -> list[str]:
    """Let pages save while the server waits for them; return in which order all was done."""
    order: list[str] = []

    async def run() -> None:
        shutdown_notice = ShutdownNotice(Bus())
        leaving = asyncio.create_task(shutdown_notice.say(answer_seconds=3600, saving_seconds=3600))
        leaving.add_done_callback(lambda task: order.append("stopped"))
        await pages(shutdown_notice, order)
        await leaving
        await asyncio.sleep(0)

    asyncio.run(run())
    return order


def test_the_server_waits_until_all_pages_have_saved() -> None:
    async def pages(shutdown_notice: ShutdownNotice, order: list[str]) -> None:
        shutdown_notice.begin()
        shutdown_notice.begin()
        for name in ("one", "other"):
            await asyncio.sleep(0.01)
            order.append(name)
            shutdown_notice.end()

    assert order_with(pages) == ["one", "other", "stopped"]


def test_a_page_that_says_so_just_after_another_has_saved_is_waited_for() -> None:
    async def pages(shutdown_notice: ShutdownNotice, order: list[str]) -> None:
        for name in ("one", "other"):
            shutdown_notice.begin()
            await asyncio.sleep(0.3 if order else 0)
            order.append(name)
            shutdown_notice.end()
            await asyncio.sleep(0.01)

    assert order_with(pages) == ["one", "other", "stopped"]


def test_a_page_that_never_ends_is_not_waited_for() -> None:
    async def run() -> None:
        shutdown_notice = ShutdownNotice(Bus())
        shutdown_notice.begin()
        await shutdown_notice.say(saving_seconds=0.01)

    asyncio.run(run())
