"""Limits on a server's log: no more lines than its reader and its disk can take.

Lines are cut, what a stranger's request causes is left out, and what is written in all is bounded:
the log of a session lies in its user's home.
"""

import logging
import time
from collections.abc import Callable, Iterable

_LONGEST_LINE = 600
_LONGEST_TRACEBACK = 6000
_AT_ONCE_BYTES = 4 * 2**20
_BYTES_A_SECOND = 50.0
_STRANGERS_PAUSE_SECONDS = 60.0
_FULL = "Too much is written into this log: lines are left out until there is room again"


class LogLimiter(logging.Filter):
    """Limit on the length and rate of lines, for all handlers of a process's log."""

    def __init__(
        self,
        is_stranger: Callable[[], bool],
        now: Callable[[], float] = time.monotonic,
        at_once_bytes: int = _AT_ONCE_BYTES,
    ) -> None:
        """``is_stranger``: whether a request is being answered whose caller is not known."""
        super().__init__()
        self._is_stranger, self._now = is_stranger, now
        self._most = self._left = float(at_once_bytes)
        self._looked_at = now()
        self._stranger_at = -float("inf")
        self._is_full = False

    def keep(self, handlers: Iterable[logging.Handler]) -> None:
        """Look after what these write."""
        for handler in handlers:
            handler.addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Cut a record, and say whether it is written."""
        if self._is_stranger() and not self._is_for_admins(record):
            return False
        shorten(record, _LONGEST_LINE)
        if record.exc_info and not record.exc_text:
            trace = logging.Formatter().formatException(record.exc_info)
            record.exc_text = cut(trace, _LONGEST_TRACEBACK)
        return self._has_room(record)

    def _is_for_admins(self, record: logging.LogRecord) -> bool:
        """Whether it tells of a fault, of which one line in a while is enough."""
        if record.levelno < logging.ERROR or self._now() - self._stranger_at < (
            _STRANGERS_PAUSE_SECONDS
        ):
            return False
        self._stranger_at = self._now()
        return True

    def _has_room(self, record: logging.LogRecord) -> bool:
        now = self._now()
        self._left = min(self._most, self._left + _BYTES_A_SECOND * (now - self._looked_at))
        self._looked_at = now
        size = len(str(record.msg)) + len(record.exc_text or "")
        if self._left >= size:
            self._left -= size
            self._is_full = False
            return True
        if self._is_full:
            return False
        # Once, in the place of the first that is left out.
        self._is_full = True
        self._left -= len(_FULL)
        record.msg, record.exc_info, record.exc_text = _FULL, None, None
        return True


def shorten(record: logging.LogRecord, longest: int) -> None:
    """Cut a record's words where they are too long.

    Of one whose arguments do not fit, the words are told alone: a handler would do no more than
    complain of it, but what a filter raises reaches whoever logged.
    """
    try:
        words = record.getMessage()
    except Exception as error:  # noqa: BLE001  # an argument's own __str__ may raise anything
        words = f"{record.msg} ({record.pathname}:{record.lineno}: {type(error).__name__})"
    record.msg, record.args = cut(words, longest), None


def cut(text: str, longest: int) -> str:
    """Cut a text in its middle, where it is too long.

    >>> cut("GET /a/very/long/address HTTP/1.1", 25)
    'GET /a/ver[...]s HTTP/1.1'
    """
    if len(text) <= longest:
        return text
    mark = "[...]"
    head = (longest - len(mark) + 1) // 2
    tail = longest - len(mark) - head
    return f"{text[:head]}{mark}{text[-tail:]}"
