"""Tornado's timers by a clock that nobody sets.

Tried with Tornado 6.5. They count by the machine's time of day. Once that has been an hour ahead
and is right again, a `PeriodicCallback` is not called for an hour: the hub would not notice that a
service or a session has ended, nor a session's server that a kernel has died.
"""

import time
from typing import Any

from tornado.ioloop import IOLoop


def use_monotonic_clock() -> None:
    """Let the timers that are begun from now on go by the time since the machine was booted."""
    IOLoop.time = _monotonic  # type: ignore[assignment, method-assign]


def _monotonic(_loop: Any) -> float:
    return time.monotonic()
