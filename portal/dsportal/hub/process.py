"""Liveness of the hub's process, for its services: a hub that was killed cannot end them.

The hub names itself to them. Asked only once it runs, a service could take for its parent who has
adopted it, and outlive the hub for good.
"""

import os
import signal
from collections.abc import Mapping

VARIABLE = "PORTAL_HUB_PID"


def named() -> dict[str, str]:
    """Return the variable that the hub gives to its services."""
    return {VARIABLE: str(os.getpid())}


def is_there(environment: Mapping[str, str] = os.environ) -> bool:
    """Say whether the hub that started this process is still there."""
    return str(os.getppid()) == environment[VARIABLE]


def end_when_told() -> None:
    """End at once when the hub (SIGINT) or systemd (SIGTERM) says so: for who writes nothing.

    The hub ends its services one after the other, and is gone for its users meanwhile.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
