"""GPU hours as a table: for the page, for the API, and as CSV for a spreadsheet."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, get_args

By = Literal["user", "group"]
DAYS = (1, 7, 30)
"""The spans that can be asked for, up to now."""
# What a table calculation takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class GpuHours(Protocol):
    """Source of GPU hours: `dsportal.usage.sources.UsageSource`."""

    async def gpu_hours(self, since: datetime, until: datetime) -> tuple[Sequence[Any], bool]:
        """Return a row for each user, and whether these are of the sessions alone.

        That is so while Slurm does not answer.
        """
        ...

    async def group_gpu_hours(self, since: datetime, until: datetime) -> tuple[Sequence[Any], bool]:
        """Return a row for each group; see `gpu_hours`."""
        ...


@dataclass(frozen=True)
class UsageQuery:
    """Query for GPU hours: the number of days, and whether by user or by group."""

    days: int
    by: By


@dataclass(frozen=True)
class UsageTable:
    """The rows, and whether they lack all jobs but the sessions, since Slurm does not answer."""

    rows: list[dict[str, Any]]
    lacks_jobs: bool


def question(days: str, by: str) -> UsageQuery:
    """Read a question; raises `ValueError` with a sentence."""
    if days not in map(str, DAYS):
        raise ValueError(f"days must be one of {', '.join(map(str, DAYS))}.")
    if by not in get_args(By):
        raise ValueError("by must be user or group.")
    return UsageQuery(int(days), "user" if by == "user" else "group")


async def answer(source: GpuHours, asked: UsageQuery, now: datetime) -> UsageTable:
    """Return the rows as they are, the largest first."""
    since = now - timedelta(days=asked.days)
    ask = source.gpu_hours if asked.by == "user" else source.group_gpu_hours
    rows, lacks_jobs = await ask(since, now)
    return UsageTable([_rounded(asdict(row)) for row in rows], lacks_jobs)


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {
        key: round(value, 2) if isinstance(value, float) else value for key, value in row.items()
    }


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Write rows for a table calculation; texts that it would take for formulas are marked."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _cell(value) for key, value in row.items()})
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value
