"""GPU hours from who held GPUs when."""

from datetime import UTC, datetime, timedelta

import pytest

from dsportal.usage.report import GroupRow, UsageRow, Use, by_group, by_user

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SPAN = (NOON, NOON + 4 * HOUR)


def use(
    start: float,
    end: float | None,
    *,
    seen: float | None = None,
    gpus: int = 2,
    user: str = "ada",
    groups: tuple[str, ...] = ("ml",),
    is_session: bool = True,
) -> Use:
    """Give a use by its hours after noon."""
    last = seen if seen is not None else end
    return Use(
        user=user,
        groups=frozenset(groups),
        gpus=gpus,
        started=NOON + start * HOUR,
        seen=NOON + (last or 0) * HOUR,
        ended=None if end is None else NOON + end * HOUR,
        is_session=is_session,
    )


@pytest.mark.parametrize(
    ("one", "hours"),
    [
        (use(1, 2), 2.0),
        (use(-3, 1), 2.0),
        (use(3, 9), 2.0),
        (use(-3, 9), 8.0),
        (use(-3, -1), 0.0),
        (use(5, 6), 0.0),
        (use(0, 0), 0.0),
        (use(1, 2, gpus=0), 0.0),
    ],
)
def test_what_is_within_the_span_counts(one: Use, hours: float) -> None:
    assert one.gpu_hours(*SPAN, now=NOON + 10 * HOUR) == hours


def test_what_goes_on_counts_until_now() -> None:
    now = NOON + 3 * HOUR
    assert use(1, None, seen=2.99).gpu_hours(*SPAN, now=now) == 4.0


def test_what_was_not_heard_of_for_a_while_counts_until_it_was_last_seen() -> None:
    now = NOON + 3 * HOUR
    assert use(1, None, seen=2).gpu_hours(*SPAN, now=now) == 2.0


def test_a_user_has_one_row_and_the_largest_comes_first() -> None:
    uses = [
        use(0, 1, user="bob"),
        use(0, 1),
        use(1, 2, gpus=4),
        use(0, 2, gpus=1, is_session=False),
        use(-2, -1, user="carl"),
    ]
    assert by_user(uses, *SPAN, now=SPAN[1]) == [
        UsageRow("ada", ("ml",), sessions=2, gpu_hours=8.0, session_gpu_hours=6.0),
        UsageRow("bob", ("ml",), sessions=1, gpu_hours=2.0, session_gpu_hours=2.0),
    ]


def test_a_session_without_gpus_is_a_session() -> None:
    (row,) = by_user([use(0, 1, gpus=0)], *SPAN, now=SPAN[1])
    assert (row.sessions, row.gpu_hours) == (1, 0.0)


def test_a_user_in_two_groups_counts_in_both() -> None:
    uses = [use(0, 1, groups=("ml", "bio")), use(0, 1, user="bob", groups=("bio",), gpus=1)]
    assert by_group(uses, *SPAN, now=SPAN[1]) == [
        GroupRow("bio", users=2, sessions=2, gpu_hours=3.0, session_gpu_hours=3.0),
        GroupRow("ml", users=1, sessions=1, gpu_hours=2.0, session_gpu_hours=2.0),
    ]


def test_who_has_changed_groups_counts_in_each_for_the_time_there() -> None:
    uses = [use(0, 1, groups=("students",)), use(1, 3, groups=("staff",))]
    (user,) = by_user(uses, *SPAN, now=SPAN[1])
    assert user.groups == ("staff", "students")
    assert {row.group: row.gpu_hours for row in by_group(uses, *SPAN, now=SPAN[1])} == {
        "staff": 4.0,
        "students": 2.0,
    }
