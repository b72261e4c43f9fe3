"""Back-off after failed logins: a delay that grows with the failures.

Three things are counted: failures with one name from one address, with one name from anywhere, and
from one address with any name. The first is the strictest, so that an attacker is held up and not
the user. No delay is longer than a minute: nobody is locked out. Whoever has logged in from an
address before is, at that address, held up by the failures made there only.

Attempts are counted when they begin, and forgiven when they succeed: many at once gain nothing. Who
would have to wait only for those that have not ended yet waits for their ends: many who log in at
the same moment, from behind one address, have not failed.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TypeVar

T = TypeVar("T")
# A name with an address, a name, an address.
Key = tuple[str, str]

_FIRST_SECONDS = 3.0


@dataclass(frozen=True)
class AttemptRule:
    """Delays after failed logins: how many failures are free, and how long the delay can grow."""

    free: int
    longest_seconds: float
    forget_seconds: float
    """One failure is forgotten each time that so much has passed."""

    def delay(self, failures: int) -> float:
        """Give the pause after the last failure: it doubles with each beyond the free."""
        beyond = min(failures - self.free, 20)
        return 0.0 if beyond < 0 else min(_FIRST_SECONDS * 2**beyond, self.longest_seconds)


PAIR = AttemptRule(free=5, longest_seconds=60, forget_seconds=120)
NAME = AttemptRule(free=20, longest_seconds=30, forget_seconds=60)
# Many users may be behind one address.
ADDRESS = AttemptRule(free=50, longest_seconds=15, forget_seconds=6)

Rules = list[tuple[Key, AttemptRule]]

MOST_KEPT = 20_000
"""Entries of each table; the oldest go first."""


@dataclass
class _Tally:
    failures: float
    """As many as there were at ``at``; they have faded since."""
    at: float
    last: float
    """When there was an attempt."""
    pending: int = 0
    """How many of the failures have not ended yet."""


class Attempts:
    """Counts failures, in memory; ``now`` is any clock's seconds."""

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self._most_kept = most_kept
        self._tallies: OrderedDict[Key, _Tally] = OrderedDict()
        self._at_home: OrderedDict[Key, None] = OrderedDict()
        self._under_way: dict[Key, list[Rules]] = {}
        """Of each name with its address what attempts count for that have not ended yet."""

    def begin(self, name: str, address: str, now: float) -> float:
        """Count an attempt; give the seconds to wait where it comes too early, and count nothing.

        ``name`` is empty where what was typed is no name.
        """
        rules = self._rules(name, address)
        wait = max(self._wait(key, rule, now) for key, rule in rules)
        if wait <= 0:
            for key, rule in rules:
                self._add(key, rule, 1, now, pending=1)
            self._under_way.setdefault((name, address), []).append(rules)
        return max(0.0, wait)

    def may_begin_after_others(self, name: str, address: str, now: float) -> bool:
        """Whether one would have nothing to wait for if all succeeded that have not ended yet."""
        rules = self._rules(name, address)
        return all(self._wait(key, rule, now, forgive_pending=True) <= 0 for key, rule in rules)

    def failed(self, name: str, address: str, now: float) -> None:
        """Leave the attempt counted."""
        self._end(name, address, 0, now)

    def succeeded(self, name: str, address: str, now: float) -> None:
        """Forgive the attempt, and all failures of this user at this address.

        Those that have not ended yet stay counted: each success would let in as many again.
        """
        self.withdraw(name, address, now)
        before = self._tallies.pop((name, address), None)
        if before is not None and before.pending:
            self._tallies[name, address] = replace(before, failures=before.pending, at=now)
        _keep(self._at_home, (name, address), None, self._most_kept)

    def withdraw(self, name: str, address: str, now: float) -> None:
        """Take back an attempt that told nothing of the password."""
        self._end(name, address, -1, now)

    def _end(self, name: str, address: str, count: int, now: float) -> None:
        pair = (name, address)
        # Not what it would count for now: the user may have logged in from there meanwhile.
        begun = self._under_way.pop(pair, [])
        rules = begun.pop(0) if begun else self._rules(name, address)
        if begun:
            self._under_way[pair] = begun
        for key, rule in rules:
            self._add(key, rule, count, now, pending=-1)

    def _rules(self, name: str, address: str) -> Rules:
        if not name:
            return [(("", address), ADDRESS)]
        pair = ((name, address), PAIR)
        if (name, address) in self._at_home:
            return [pair]
        return [pair, ((name, ""), NAME), (("", address), ADDRESS)]

    def _failures(self, key: Key, rule: AttemptRule, now: float) -> float:
        tally = self._tallies.get(key)
        if tally is None:
            return 0.0
        return max(0.0, tally.failures - (now - tally.at) / rule.forget_seconds)

    def _wait(
        self, key: Key, rule: AttemptRule, now: float, *, forgive_pending: bool = False
    ) -> float:
        tally = self._tallies.get(key)
        if tally is None:
            return 0.0
        failures = self._failures(key, rule, now) - (tally.pending if forgive_pending else 0)
        return tally.last + rule.delay(math.ceil(failures)) - now

    def _add(self, key: Key, rule: AttemptRule, count: int, now: float, *, pending: int) -> None:
        failures = max(0.0, self._failures(key, rule, now) + count)
        before = self._tallies.get(key)
        # A success holds up nobody else at its address.
        last = now if count > 0 or before is None else before.last
        # One that was let go to save memory knows nothing of those before.
        under_way = max(0, (0 if before is None else before.pending) + pending)
        _keep(self._tallies, key, _Tally(failures, now, last, under_way), self._most_kept)


def _keep(table: OrderedDict[Key, T], key: Key, value: T, most: int) -> None:
    table[key] = value
    table.move_to_end(key)
    while len(table) > most:
        table.popitem(last=False)
