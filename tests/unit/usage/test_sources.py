"""GPU hours from the hub's record, with and without Slurm's accounting."""

import asyncio
import gc
import threading
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dsportal.usage import report, sources
from dsportal.usage.record import UsageRecord
from dsportal.usage.report import UsageRow
from dsportal.usage.sources import UsageSource
from jupyterhub_gpu_slurm.errors import CommandFailed
from jupyterhub_gpu_slurm.session.observation import SessionNews
from jupyterhub_gpu_slurm.slurm.accounting import AccountedJob

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)
SPAN = (NOW - 4 * HOUR, NOW)
SESSION = SessionNews("a" * 32, "ada", ("ml",), 2, 12, "sxm2", "n1", NOW - 2 * HOUR, NOW)
EARLIER = SessionNews("b" * 32, "ada", ("ml",), 1, 3, "sxm2", "n1", NOW - 3 * HOUR, NOW - HOUR)
JOBS = [
    AccountedJob(12, "ada", 2, NOW - 2 * HOUR, None),
    AccountedJob(13, "ada", 4, NOW - 2 * HOUR, NOW - HOUR),
    AccountedJob(14, "bob", 1, NOW - 2 * HOUR, NOW),
    # A number that was used again after Slurm lost its state.
    AccountedJob(3, "bob", 1, NOW - HOUR, NOW),
]


@dataclass
class Client:
    """Stands in for Slurm's accounting."""

    has_accounting: bool = True
    fails: bool = False
    questions: int = 0

    async def accounts_gpus(self) -> bool:
        return self.has_accounting

    async def accounted_jobs(self, since: datetime, until: datetime) -> list[AccountedJob]:
        self.questions += 1
        await asyncio.sleep(0)
        if self.fails:
            raise CommandFailed("no answer")
        return JOBS


@pytest.fixture
def record(tmp_path: Path) -> UsageRecord:
    record = UsageRecord(tmp_path / "usage.sqlite")
    record.write([SESSION, EARLIER])
    return record


def source(record: UsageRecord, client: Client) -> UsageSource:
    return UsageSource(record, client, lambda name: [f"{name}s"])  # type: ignore[arg-type]


def rounded(rows: list[UsageRow]) -> dict[str, tuple[object, ...]]:
    return {
        row.user: (
            row.groups,
            row.sessions,
            round(row.gpu_hours, 1),
            round(row.session_gpu_hours, 1),
        )
        for row in rows
    }


ALONE = {"ada": (("ml",), 2, 6.0, 6.0)}


@pytest.mark.parametrize("client", [Client(has_accounting=False), Client(fails=True)])
def test_without_accounting_the_record_speaks_for_itself(
    record: UsageRecord, client: Client
) -> None:
    rows, _ = asyncio.run(source(record, client).gpu_hours(*SPAN))
    assert rounded(rows) == ALONE


@pytest.mark.parametrize(
    ("client", "lacks_jobs"),
    [(Client(), False), (Client(has_accounting=False), False), (Client(fails=True), True)],
)
def test_hours_without_the_other_jobs_are_known_to_be_so(
    record: UsageRecord, client: Client, lacks_jobs: bool
) -> None:
    for ask in (source(record, client).gpu_hours, source(record, client).group_gpu_hours):
        assert asyncio.run(ask(*SPAN))[1] is lacks_jobs


def test_a_day_of_asking_does_not_keep_every_answer(record: UsageRecord) -> None:
    async def look() -> int:
        ours = source(record, Client())
        given = [weakref.ref(await ours.uses(SPAN[0], NOW + hours * HOUR)) for hours in range(20)]
        gc.collect()
        return sum(one() is not None for one in given)

    assert asyncio.run(look()) <= 3


def test_accounting_adds_the_other_jobs_and_their_users(record: UsageRecord) -> None:
    rows, _ = asyncio.run(source(record, Client()).gpu_hours(*SPAN))
    assert rounded(rows) == {
        "ada": (("adas", "ml"), 2, 10.0, 6.0),
        "bob": (("bobs",), 0, 3.0, 0.0),
    }


def test_a_session_counts_in_the_groups_of_its_time_other_jobs_in_those_of_now(
    record: UsageRecord,
) -> None:
    rows, _ = asyncio.run(source(record, Client()).group_gpu_hours(*SPAN))
    assert {row.group: round(row.gpu_hours, 1) for row in rows} == {
        "ml": 6.0,
        "adas": 4.0,
        "bobs": 3.0,
    }


def test_many_who_look_cost_one_question(record: UsageRecord) -> None:
    client = Client()

    async def look() -> None:
        ours = source(record, client)
        await asyncio.gather(*(ours.gpu_hours(*SPAN) for _ in range(20)))
        await ours.group_gpu_hours(*SPAN)

    asyncio.run(look())
    assert client.questions == 1


def test_who_comes_back_a_minute_later_gets_the_answer_that_took_long(record: UsageRecord) -> None:
    client = Client()
    begin = datetime(2026, 11, 21, 12, 0, 50, tzinfo=UTC)

    async def look() -> None:
        ours = source(record, client)
        for later in (timedelta(0), timedelta(minutes=1)):
            await ours.gpu_hours(begin - 4 * HOUR + later, begin + later)

    asyncio.run(look())
    assert client.questions == 1


def test_a_record_that_cannot_be_read_is_asked_again(tmp_path: Path) -> None:
    file = tmp_path / "usage.sqlite"
    file.write_text("no database at all")
    ours = source(UsageRecord(file), Client(has_accounting=False))

    async def look() -> list[UsageRow]:
        with pytest.raises(Exception, match="not a database"):
            await ours.gpu_hours(*SPAN)
        file.unlink()
        rows, _ = await ours.gpu_hours(*SPAN)
        return rows

    assert asyncio.run(look()) == []


@pytest.mark.parametrize(
    ("module", "name"), [(sources, "together"), (report, "by_user"), (report, "by_group")]
)
def test_a_month_of_jobs_is_counted_in_a_thread_of_its_own(
    record: UsageRecord, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    counters: list[int] = []

    def count(*_: object) -> list[object]:
        counters.append(threading.get_ident())
        return []

    async def ask() -> None:
        asked = source(record, Client())
        await asked.gpu_hours(*SPAN)
        await asked.group_gpu_hours(*SPAN)

    monkeypatch.setattr(module, name, count)
    asyncio.run(ask())
    assert counters
    assert threading.get_ident() not in counters
