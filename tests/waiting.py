"""Waiting for a condition, never for a number of seconds."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_SHORTEST, _LONGEST = 0.2, 1.0
"""Seconds between two looks: each is a process or a request, and other tests want the cores."""


def until(
    condition: Callable[[], T], *, seconds: float, what: str, every: float | None = None
) -> T:
    """Return the condition's first true value; fail with ``what`` when there is none in time.

    Without ``every`` it looks less often the longer it has waited.
    """
    begun = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - begun
        if waited > seconds:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(every or min(_LONGEST, max(_SHORTEST, waited / 10)))
