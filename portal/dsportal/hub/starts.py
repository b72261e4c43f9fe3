"""Starts that end without a session: cancelled ones are waited for, interrupted ones given up."""

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


def interrupted(user: Any) -> list[Any]:
    """Return the user's spawners whose starts nobody has resumed yet."""
    known = [user.spawners[name] for name in user.orm_spawners]
    return [one for one in known if not one.active and getattr(one, "is_interrupted", False)]


async def give_up(spawner: Any, seconds: float) -> None:
    """End such a start, and wait for it so long."""
    # So that nobody starts it meanwhile: neither the reconciler nor the user.
    spawner._stop_pending = True
    spawner._stop_future = asyncio.ensure_future(_given_up(spawner))
    done, _ = await asyncio.wait([spawner._stop_future], timeout=seconds)
    for one in done:
        one.result()


async def _given_up(spawner: Any) -> None:
    try:
        await spawner.give_up()
    finally:
        spawner._stop_pending, spawner._stop_future = False, None
