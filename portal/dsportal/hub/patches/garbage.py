"""Garbage collection of the hub: what is there once it listens is not looked through again.

Its modules hold some 200,000 objects, which stay. Each full collection looked at all of them, and
all pages waited for 0.1 s. It comes when much is made at once, as in a crowd of starts.

Tried with JupyterHub 6.1.1.
"""

import gc
from functools import wraps
from typing import Any

from jupyterhub.app import JupyterHub

_start = JupyterHub.start


def install() -> None:
    """Let it happen when the hub has started."""

    @wraps(_start)
    async def start(self: Any) -> None:
        await _start(self)
        gc.freeze()

    JupyterHub.start = start
