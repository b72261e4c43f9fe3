from datetime import UTC, datetime, timedelta

import pytest

from jupyterhub_gpu_slurm.session.idle import (
    IdleReport,
    IdleTracker,
    limit_for,
    limits_as_json,
    warning_for,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("groups", "minutes"),
    [
        ((), 120),
        (("others",), 120),
        (("students",), 30),
        (("students", "research"), 600),
        (("students", "forever"), None),
    ],
)
def test_the_most_generous_group_counts(groups: tuple[str, ...], minutes: float | None) -> None:
    by_group = {"students": 30.0, "research": 600.0, "forever": 0.0}
    limit = limit_for(120, by_group, groups)
    assert limit == (None if minutes is None else timedelta(minutes=minutes))


def test_zero_minutes_are_no_limit() -> None:
    assert limit_for(0, {}, ()) is None
    assert limit_for(0, {"students": 30}, ("students",)) == timedelta(minutes=30)


@pytest.mark.parametrize(
    ("idle", "age", "limit", "is_over"),
    [
        (HOUR, timedelta(), HOUR, True),
        (2 * HOUR, timedelta(seconds=30), HOUR, True),
        (HOUR - timedelta(seconds=1), timedelta(), HOUR, False),
        (9 * HOUR, timedelta(), None, False),
        # Time alone makes no session over: it was used since, or cannot be heard.
        (timedelta(minutes=59), timedelta(minutes=30), HOUR, False),
        (2 * HOUR, timedelta(minutes=3), HOUR, False),
    ],
)
def test_a_sessions_own_fresh_word_ends_it(
    idle: timedelta, age: timedelta, limit: timedelta | None, is_over: bool
) -> None:
    assert IdleReport(idle, NOW - age, limit).is_over(NOW) is is_over


@pytest.mark.parametrize(("limit", "warning"), [(None, 10), (120, 10), (20, 10), (10, 5)])
def test_a_warning_leaves_time_without_one(limit: float | None, warning: float) -> None:
    given = None if limit is None else timedelta(minutes=limit)
    assert warning_for(given, 10) == timedelta(minutes=warning)


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (None, {"limit_seconds": None, "warning_seconds": 600}),
        (timedelta(minutes=10), {"limit_seconds": 600, "warning_seconds": 300}),
        # A site that tests it: less than a second is not "no limit".
        (timedelta(seconds=0.1), {"limit_seconds": 1, "warning_seconds": 0}),
    ],
)
def test_a_session_is_told_its_limits_in_seconds(
    limit: timedelta | None, told: dict[str, int | None]
) -> None:
    assert limits_as_json(limit, 10) == told


@pytest.mark.parametrize(("minutes", "use"), [(5, "used"), (14, "used"), (16, "unknown")])
def test_what_a_session_said_long_ago_is_not_taken_for_now(minutes: int, use: str) -> None:
    tracker = IdleTracker()
    tracker.hear(0, HOUR, NOW)
    now = NOW + timedelta(minutes=minutes)
    assert tracker.use(HOUR, now) == use
    assert bool(tracker.to_json(now)) == (use != "unknown")


def test_only_a_session_over_its_limit_is_unused() -> None:
    tracker = IdleTracker()
    assert tracker.unused(NOW) is None
    tracker.hear(3599, HOUR, NOW)
    assert tracker.unused(NOW) is None
    tracker.hear(3600, HOUR, NOW)
    assert tracker.unused(NOW) == IdleReport(HOUR, NOW, HOUR)
