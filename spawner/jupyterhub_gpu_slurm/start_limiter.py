"""Limits the rate of starts, so that the hub answers its pages between them."""

from collections.abc import Coroutine
from typing import Any

from jupyterhub_gpu_slurm.slurm.limiters import RateLimiter

LIMITER = RateLimiter()
"""One for the whole hub."""


def rate_limited_scopes(spawner: Any) -> Coroutine[Any, Any, list[str]]:
    """Return no scopes of our own, which means JupyterHub's; but wait for this start's turn.

    JupyterHub works some 20 ms for a start, without a pause, and this is the first moment of it in
    which it waits for us: so when a class of students presses Start, pages are answered between
    their starts, not after all of them.
    """
    # Now, not in the coroutine, which begins later: whoever answers a page in between would roll
    # back what JupyterHub has just noted of this start.
    spawner.user.db.commit()
    return _no_scopes_in_turn()


async def _no_scopes_in_turn() -> list[str]:
    await LIMITER.wait()
    return []
