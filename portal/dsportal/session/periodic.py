"""Periodic tasks, for as long as a session runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn


async def repeat(
    work: Callable[[], Awaitable[object]],
    pause: Callable[[], float],
    log: logging.Logger,
    failure: str,
) -> NoReturn:
    """Do it, then wait for as many seconds as ``pause`` gives; an error is logged as ``failure``.

    The next time may do better: a session goes on without what was looked for.
    """
    while True:
        try:
            await work()
        except Exception:
            log.exception(failure)
        await asyncio.sleep(pause())
