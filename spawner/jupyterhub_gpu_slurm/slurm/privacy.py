"""Slurm's ``PrivateData`` (slurm.conf(5)): whether it hides other users' jobs from the hub.

Where it does, squeue answers as if there were no such job (seen with 22.05 and 24.11: nothing and
success, or "Invalid job id specified"), so that a job which is missing says nothing.
"""

import logging
import time
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

# How long jobs that were hidden count as hidden: nothing is lost if they are not any more.
_SECONDS = 60.0


class JobPrivacy:
    """Slurm's setting, as far as it is known.

    It can change by a reconfigure at any time. So that jobs are not hidden is never taken from
    memory.
    """

    def __init__(self) -> None:
        self._hidden_until = -float("inf")
        self._was_told = False

    async def hides_jobs(self, ask: Callable[[], Awaitable[bool]]) -> bool:
        """Say whether jobs are hidden; ``ask`` asks Slurm."""
        if time.monotonic() < self._hidden_until:
            return True
        is_hidden = await ask()
        if is_hidden:
            self._hidden_until = time.monotonic() + _SECONDS
        else:
            self._was_told = False
        return is_hidden

    def tell_once(self) -> None:
        """Say in the log what to do about jobs that nobody can look at."""
        if self._was_told:
            return
        self._was_told = True
        log.error(
            "Slurm hides others' jobs (PrivateData=jobs): set slurm.operator; a session whose job "
            "it does not show counts as running"
        )
