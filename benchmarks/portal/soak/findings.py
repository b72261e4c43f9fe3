"""What is found while the day passes, and when a fault excuses it."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

NOT_YET_WRITTEN_SECONDS = 10.0
"""A session that is younger may be lost if slurmctld crashes: docs/explanation/survival.md."""


@dataclass(frozen=True)
class BrokenInvariant:
    """A broken invariant."""

    at: float
    """Seconds after the begin of the run."""
    kind: str
    """One word or two: what is broken."""
    words: str


@dataclass
class Disturbance:
    """A fault that was injected."""

    name: str
    begin: float
    seconds: float
    """How long it was to last, where its kind lasts a while."""
    which: float
    """Which of several parts was to fail, such as nodes: from 0 to 1."""
    repaired: float | None = None
    """When the fault itself was over."""
    recovered: float | None = None
    """When the portal answered again and all nodes had registered."""
    failure: str = ""


@dataclass
class Findings:
    """What all parties report to; safe for threads."""

    grace_seconds: float = 20.0
    """For so long after a recovery, a failure is still the fault's."""
    found: list[BrokenInvariant] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """What happened how often, for the report."""
    most_at_once: Counter[str] = field(default_factory=Counter)
    """How many of a kind were open side by side at the most."""
    _open: Counter[str] = field(default_factory=Counter)
    _began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> float:
        """Return the seconds since the begin."""
        return time.monotonic() - self._began

    def add(self, kind: str, words: str) -> None:
        """Keep and tell a broken invariant."""
        finding = BrokenInvariant(round(self.now(), 1), kind, words)
        with self._lock:
            self.found.append(finding)
        print(f"{finding.at:8.1f} BROKEN {kind}: {words}", flush=True)

    def count(self, what: str) -> None:
        """Count something that happens often."""
        with self._lock:
            self.counts[what] += 1

    def opened(self, what: str) -> None:
        """Note that one more of a kind is open."""
        with self._lock:
            self._open[what] += 1
            self.most_at_once[what] = max(self.most_at_once[what], self._open[what])

    def closed(self, what: str) -> None:
        """Note that one less of a kind is open."""
        with self._lock:
            self._open[what] -= 1

    @contextmanager
    def disturbance(self, name: str, *, seconds: float, which: float) -> Iterator[Disturbance]:
        """Note that a fault, planned like this, is there until the end of the block."""
        one = Disturbance(name, self.now(), seconds, which)
        with self._lock:
            self.disturbances.append(one)
        print(f"{one.begin:8.1f} fault  {name}", flush=True)
        try:
            yield one
        finally:
            one.recovered = self.now()
            print(f"{one.recovered:8.1f} over   {name}", flush=True)

    def excuses(self, begin: float, end: float | None = None) -> bool:
        """Say whether a fault, or what follows one, falls into this time."""
        end = self.now() if end is None else end
        with self._lock:
            return any(
                one.begin <= end
                and (one.recovered is None or begin <= one.recovered + self.grace_seconds)
                for one in self.disturbances
            )

    def may_be_lost(self, since: float) -> bool:
        """Say whether slurmctld may not have written down a session before it was killed.

        ``since``: when its user found it ready, which may be while the fault is prepared.
        """
        with self._lock:
            return any(
                one.name == "slurmctld killed"
                and one.begin - since < NOT_YET_WRITTEN_SECONDS
                and since <= (self.now() if one.repaired is None else one.repaired)
                for one in self.disturbances
            )
