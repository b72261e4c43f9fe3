"""Progress of a download, in a line now and then that a notebook and a log can show too."""

import time
from collections.abc import Callable

_PAUSE_SECONDS = 5.0
_MB = 10**6


class PullProgress:
    """Progress of a download, printed now and then."""

    def __init__(self, size: int, say: Callable[[str], None]) -> None:
        self._size, self._say = size, say
        self._said_at, self._said = time.monotonic(), -1

    def at(self, arrived: int) -> None:
        """Hear how many bytes are there; say so where some time has passed and more are."""
        percent = min(100, 100 * arrived // max(1, self._size))
        now = time.monotonic()
        if percent > self._said and now >= self._said_at + _PAUSE_SECONDS:
            self._said_at, self._said = now, percent
            self._say(f"{percent:3d} %  {arrived / _MB:.0f} of {self._size / _MB:.0f} MB")
