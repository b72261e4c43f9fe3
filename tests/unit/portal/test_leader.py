"""Whose turn it is to be the hub, with a clock that only moves when somebody waits."""

from dataclasses import dataclass, field

import pytest

from dsportal.hub import leader
from dsportal.hub.breaker import DatabaseAway
from dsportal.hub.leader import Leadership, LockUnknown

OURS, ANOTHERS, NO_ANSWER = True, False, None


@dataclass
class Moments:
    """A lock of which is known whose it is when; the last answer holds from then on."""

    answers: list[bool | None]
    now: float = 0.0
    releases: list[float] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    def is_held(self) -> bool:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise LockUnknown("the server is starting")
        return answer

    def release(self) -> None:
        self.releases.append(self.now)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def leadership(self) -> Leadership:
        return Leadership(self, end=self.ended.append, clock=lambda: self.now, sleep=self.sleep)


def test_a_hub_that_is_alone_starts_at_once() -> None:
    moments = Moments([OURS])
    moments.leadership().wait()
    assert (moments.now, moments.releases) == (0, [])


def test_a_hub_waits_until_the_other_ones_lock_has_been_free_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    moments = Moments([ANOTHERS, ANOTHERS, OURS, OURS])
    moments.leadership().wait()
    free_from = 2 * leader.PAUSE_SECONDS
    assert moments.releases == [free_from]
    assert moments.now == free_from + leader.GRACE_SECONDS
    assert [record.getMessage() for record in caplog.records] == [
        "Another machine is running the hub; this one is on standby",
        "The other machine's hub is gone; this machine is taking over",
    ]


def test_a_hub_that_was_only_restarted_stays_the_hub() -> None:
    # Free for a moment, back within the time that is left to it, and gone for good later.
    moments = Moments([ANOTHERS, OURS, ANOTHERS, ANOTHERS, OURS, OURS])
    moments.leadership().wait()
    pauses = 3 * leader.PAUSE_SECONDS
    assert moments.releases == [
        leader.PAUSE_SECONDS,
        pauses + leader.GRACE_SECONDS,
    ]
    assert moments.now == pauses + 2 * leader.GRACE_SECONDS


def test_a_database_that_is_away_at_the_start_is_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    moments = Moments([NO_ANSWER, NO_ANSWER, OURS])
    moments.leadership().wait()
    assert moments.now == 2 * leader.PAUSE_SECONDS
    assert [record.getMessage() for record in caplog.records] == [
        "The database does not answer: the server is starting"
    ]


def looks(moments: Moments, leadership: Leadership, times: int) -> None:
    for _ in range(times):
        moments.sleep(leader.PAUSE_SECONDS)
        leadership.look()


def test_a_hub_that_another_has_replaced_ends() -> None:
    moments = Moments([OURS, ANOTHERS])
    leadership = moments.leadership()
    leadership.wait()
    looks(moments, leadership, times=3)
    # So far it may be a connection of its own that the server has not seen break.
    assert moments.ended == []
    looks(moments, leadership, times=1)
    assert moments.ended == [leader.EXIT_CODE]


def test_a_broken_connection_that_still_had_the_lock_ends_nothing() -> None:
    moments = Moments([OURS, ANOTHERS, ANOTHERS, OURS, ANOTHERS, ANOTHERS, OURS])
    leadership = moments.leadership()
    leadership.wait()
    looks(moments, leadership, times=10)
    assert moments.ended == []


def test_a_hub_whose_database_is_away_goes_on_and_writes_nothing() -> None:
    moments = Moments([OURS, NO_ANSWER])
    leadership = moments.leadership()
    leadership.wait()
    leadership.check()
    looks(moments, leadership, times=5)
    leadership.check()
    looks(moments, leadership, times=1)
    with pytest.raises(DatabaseAway):
        leadership.check()
    moments.answers = [OURS]
    looks(moments, leadership, times=1)
    leadership.check()
    assert moments.ended == []


def test_others_wait_longer_than_a_hub_believes_in_a_lock_that_it_cannot_see() -> None:
    assert leader.GRACE_SECONDS > leader.CERTAIN_SECONDS + leader.PAUSE_SECONDS
    assert leader.GRACE_SECONDS > leader.GHOST_SECONDS + 2 * leader.PAUSE_SECONDS
