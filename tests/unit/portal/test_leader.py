"""Which machine is to run the hub, with a clock that only moves when somebody waits."""

from dataclasses import dataclass, field

import pytest

from dsportal.hub import leader
from dsportal.hub.breaker import DatabaseAway
from dsportal.hub.leader import Leadership, LockUnknown

OURS, FREE, ANOTHERS, UNKNOWN = "ours", "free", "another's", "unknown"
PAUSE = leader.PAUSE_SECONDS
ROUNDS_OF_GRACE = int(leader.GRACE_SECONDS / PAUSE) + 2


@dataclass
class StandInLock:
    """A lock of which is known whose it is at each question; the last answer stays."""

    answers: list[str]
    now: float = 0.0
    breaks: int = 0
    """How often the connection breaks when others are to be ended."""
    others_ended_at: list[float] = field(default_factory=list)
    seen_at: list[float] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)

    def _next(self) -> str:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == UNKNOWN:
            raise LockUnknown("the server is starting")
        return answer

    def is_held(self) -> bool:
        return self._next() in (OURS, FREE)

    def is_free(self) -> bool:
        return self._next() == FREE

    def end_others(self) -> None:
        if self.breaks:
            self.breaks -= 1
            raise LockUnknown("the connection is lost")
        self.others_ended_at.append(self.now)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def leadership(self) -> Leadership:
        return Leadership(
            self,
            seen=lambda: self.seen_at.append(self.now),
            end=self.exits.append,
            clock=lambda: self.now,
            sleep=self.sleep,
        )


def waited(*answers: str) -> StandInLock:
    lock = StandInLock(list(answers))
    lock.leadership().wait()
    return lock


def led(*answers: str) -> tuple[StandInLock, Leadership]:
    """Return a hub that has the lock, and what the next questions find."""
    lock = StandInLock([OURS, *answers])
    leadership = lock.leadership()
    leadership.wait()
    return lock, leadership


def look(lock: StandInLock, leadership: Leadership, times: int) -> None:
    for _ in range(times):
        lock.sleep(PAUSE)
        leadership.look()


def test_a_hub_that_is_alone_starts_at_once() -> None:
    lock = waited(FREE)
    assert (lock.now, lock.others_ended_at, lock.seen_at) == (0, [], [0])


def test_a_hub_waits_until_the_other_ones_lock_has_been_free_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lock = waited(ANOTHERS, ANOTHERS, ANOTHERS, FREE)
    free_from = 3 * PAUSE
    assert lock.now >= free_from + leader.GRACE_SECONDS
    assert lock.others_ended_at == [lock.now]
    waiting, taking = [record.getMessage() for record in caplog.records]
    assert waiting.endswith("on standby")
    assert taking.endswith("taking over")


@pytest.mark.parametrize("between", [ANOTHERS, UNKNOWN])
def test_a_hub_that_was_only_restarted_stays_the_hub(between: str) -> None:
    # Free twice, each time for a little less than is waited for.
    nearly = [FREE] * int(leader.GRACE_SECONDS / PAUSE)
    lock = waited(ANOTHERS, *nearly, between, *nearly, between, FREE)
    assert lock.now >= (2 * len(nearly) + 2) * PAUSE + leader.GRACE_SECONDS


def test_one_that_is_taken_by_a_third_machine_in_the_end_is_waited_for_again() -> None:
    lock = waited(ANOTHERS, *[FREE] * (ROUNDS_OF_GRACE - 1), ANOTHERS, FREE)
    assert lock.now >= 2 * leader.GRACE_SECONDS


def test_a_takeover_in_which_the_connection_breaks_begins_anew() -> None:
    lock = StandInLock([ANOTHERS, FREE], breaks=1)
    lock.leadership().wait()
    assert lock.now >= 2 * leader.GRACE_SECONDS
    assert lock.others_ended_at == [lock.now]


def test_after_an_absence_of_the_database_the_hub_before_is_left_time_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lock = waited(UNKNOWN, UNKNOWN, FREE)
    assert lock.now >= leader.GRACE_SECONDS
    assert "The database does not answer: the server is starting" in caplog.text


def test_a_hub_that_another_has_replaced_writes_nothing_more_and_ends() -> None:
    lock, leadership = led(ANOTHERS)
    leadership.check()
    look(lock, leadership, times=1)
    with pytest.raises(DatabaseAway):
        leadership.check()
    look(lock, leadership, times=int(leader.GHOST_SECONDS / PAUSE) - 1)
    # So far it may be a connection of its own that the server has not seen break.
    assert lock.exits == []
    look(lock, leadership, times=1)
    assert lock.exits == [leader.EXIT_CODE]


def test_a_broken_connection_that_still_had_the_lock_ends_nothing() -> None:
    ghost = [ANOTHERS] * int(leader.GHOST_SECONDS / PAUSE)
    lock, leadership = led(*ghost, OURS, *ghost, UNKNOWN, *ghost, OURS)
    look(lock, leadership, times=3 * len(ghost) + 3)
    assert lock.exits == []
    leadership.check()


def test_a_hub_whose_database_is_away_goes_on_and_writes_nothing() -> None:
    lock, leadership = led(UNKNOWN)
    look(lock, leadership, times=int(leader.CERTAIN_SECONDS / PAUSE))
    leadership.check()
    assert lock.seen_at == [0]
    look(lock, leadership, times=1)
    with pytest.raises(DatabaseAway):
        leadership.check()
    lock.answers = [OURS]
    look(lock, leadership, times=1)
    leadership.check()
    assert lock.exits == []


def test_others_wait_longer_than_a_hub_believes_in_a_lock_that_it_cannot_see() -> None:
    assert leader.GRACE_SECONDS > leader.CERTAIN_SECONDS + PAUSE
