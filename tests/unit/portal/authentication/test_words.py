import pytest

from dsportal.authentication import words


@pytest.mark.parametrize(
    ("told", "fact"),
    [
        (words.CLOSED, "disabled or has expired"),
        (words.LOCKED, "too many wrong passwords"),
        (words.MUST_CHANGE, "must be changed"),
        (words.NOT_ALLOWED, "not allowed"),
    ],
)
def test_who_is_refused_reads_why_and_whom_to_ask(told: str, fact: str) -> None:
    shown = told.format(contact="Ada, room 12")
    assert fact in shown
    assert "Ada, room 12" in shown


@pytest.mark.parametrize(("seconds", "amount"), [(1, "Wait a second,"), (40, "Wait 40 seconds,")])
def test_who_has_failed_too_often_reads_how_long_to_wait(seconds: int, amount: str) -> None:
    assert amount in words.too_many(seconds)
