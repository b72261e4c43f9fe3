"""Threads for calls that may wait for a file server, or a driver: each call has one of its own.

A thread that waits in the kernel for one that does not answer can be neither ended nor joined.
Those of asyncio's own pool are few, and are joined when the process ends; ours are made for one
call each and are left behind.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


def in_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """Begin a call in a thread of its own; the future may be forgotten."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    # Asked once, an error that nobody waits for any more is not logged.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:  # noqa: BLE001 - raised where the result is awaited
            error = raised
        # The loop may have ended meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, daemon=True, name="waits").start()
    return future
