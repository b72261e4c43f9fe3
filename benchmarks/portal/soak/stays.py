"""The crowd's own record of who has which session: what the portal and Slurm are held to."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class StayState(Enum):
    """How far a user has come."""

    ABSENT = "absent"
    STARTING = "starting"
    HERE = "here"
    LEAVING = "leaving"


@dataclass(frozen=True)
class Stay:
    """One user at one moment; another object after each change."""

    user: str
    state: StayState
    since: float
    """By the monotonic clock."""
    job_id: str = ""
    """The session's job, while the user is here."""


@dataclass
class Stays:
    """All users; safe for threads."""

    _stays: dict[str, Stay] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def change(self, user: str, state: StayState, job_id: str = "") -> None:
        """Note what a user is about to do, or what has come of it."""
        with self._lock:
            self._stays[user] = Stay(user, state, time.monotonic(), job_id)

    def now(self) -> Mapping[str, Stay]:
        """Return all users as they are now."""
        with self._lock:
            return dict(self._stays)

    def unchanged(self, before: Mapping[str, Stay]) -> dict[str, Stay]:
        """Return those for whom nothing has changed since: what was asked meanwhile holds."""
        now = self.now()
        return {user: stay for user, stay in before.items() if now.get(user) is stay}
