"""Waiting for the end of starts that were cancelled, which takes a moment."""

import asyncio
import time
from typing import Any

STILL_CANCELLED = "The start is being cancelled; try again in a moment."

_PAUSE_SECONDS = 0.05


async def are_over(*spawners: Any, seconds: float) -> bool:
    """Wait until none of these starts any more; say whether that is so after ``seconds``."""
    deadline = time.monotonic() + seconds
    while any(spawner.pending == "spawn" for spawner in spawners):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_PAUSE_SECONDS)
    return True
