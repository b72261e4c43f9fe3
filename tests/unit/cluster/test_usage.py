"""GPU hours as a table."""

import asyncio
import csv
import io
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from dsportal.cluster import usage
from dsportal.cluster.usage import UsageQuery


@dataclass(frozen=True)
class Row:
    """What one user used."""

    user: str
    groups: tuple[str, ...]
    sessions: int
    gpu_hours: float


class Source:
    """Remembers for which span it was asked."""

    span: timedelta

    async def gpu_hours(self, since: datetime, until: datetime) -> tuple[list[Row], bool]:
        self.span = until - since
        return [Row("ada", ("a", "b"), 2, 3.14159)], True

    async def group_gpu_hours(self, since: datetime, until: datetime) -> tuple[list[Row], bool]:
        raise AssertionError


def test_the_last_days_are_asked_for() -> None:
    source = Source()
    found = asyncio.run(usage.answer(source, UsageQuery(7, "user"), datetime.now(UTC)))
    assert source.span == timedelta(days=7)
    assert found.lacks_jobs
    assert found.rows == [{"user": "ada", "groups": ("a", "b"), "sessions": 2, "gpu_hours": 3.14}]


@pytest.mark.parametrize(("days", "by"), [("2", "user"), ("7", "name"), ("", "user"), ("7; x", "")])
def test_other_questions_are_refused_in_words(days: str, by: str) -> None:
    with pytest.raises(ValueError, match=r"must be .*\.$"):
        usage.question(days, by)


@pytest.mark.parametrize("user", ['=HYPERLINK("x")', "+1", "-1", "@x", "\t=1"])
def test_a_name_is_never_a_formula(user: str) -> None:
    (row,) = csv.DictReader(io.StringIO(usage.as_csv([{"user": user, "gpu_hours": 1.5}])))
    assert row["user"] == f"'{user}"
    assert row["gpu_hours"] == "1.5"


def test_commas_and_quotes_stay_in_their_cell() -> None:
    text = usage.as_csv([{"group": 'a,"b"', "gpu_hours": 0.0}])
    assert list(csv.reader(io.StringIO(text)))[1] == ['a,"b"', "0.0"]


def test_nothing_used_is_an_empty_file() -> None:
    assert usage.as_csv([]) == ""
