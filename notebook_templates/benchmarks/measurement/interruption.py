"""An end from outside: a signal becomes an exception, so that what was begun is tidied up."""

import signal
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class Interrupted(Exception):
    """Somebody wants this to end: the user, or Slurm before the time is up."""


def stop_in_order() -> None:
    """Let the first of the signals raise `Interrupted`; later ones do not stop the tidying up."""
    for number in SIGNALS:
        signal.signal(number, _raise)


def _raise(number: int, _frame: FrameType | None) -> None:
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)
    name = signal.Signals(number).name
    raise Interrupted(f"stopped by {name}; what was measured is kept: run it again to continue")
