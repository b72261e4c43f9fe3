"""Waiting for the end of starts that were cancelled, which takes a moment."""

import asyncio
import time
from typing import Any

from tornado import web

_PAUSE_SECONDS = 0.05


async def are_over(*spawners: Any, seconds: float) -> None:
    """Wait until none of these starts any more; answer with 503 where that takes longer."""
    deadline = time.monotonic() + seconds
    while any(spawner.pending == "spawn" for spawner in spawners):
        if time.monotonic() > deadline:
            raise web.HTTPError(503, "The start is being cancelled; try again in a moment.")
        await asyncio.sleep(_PAUSE_SECONDS)
