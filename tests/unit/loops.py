"""Event loops of tests."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

_SECONDS = 20


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own, and not for ever."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), _SECONDS))

    return run
