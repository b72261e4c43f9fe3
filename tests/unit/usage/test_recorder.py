"""How news of sessions come to the file: in a thread, and however often they are told."""

import asyncio
import logging
import sqlite3
import threading
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dsportal.usage.record import UsageRecord
from dsportal.usage.recorder import Recorder
from jupyterhub_gpu_slurm.session.observation import Ending, SessionNews

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
KEEP = timedelta(days=90)
SEEN = SessionNews("a" * 32, "ada", ("ml",), 2, 12, "sxm2", "node001", NOON, NOON)
STOPPED = replace(SEEN, ending=Ending.STOPPED, ended=NOON)


@dataclass
class File:
    """Stands in for the record where failures and batches must be exact."""

    fails: bool = False
    batches: list[list[SessionNews]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    pruned: int = 0

    def write(self, news: list[SessionNews]) -> None:
        self.threads.add(threading.get_ident())
        if self.fails:
            raise sqlite3.OperationalError("disk I/O error")
        self.batches.append(list(news))

    def prune(self, now: datetime, keep: timedelta) -> None:
        assert keep == KEEP
        self.pruned += 1


def recorder(file: File) -> Recorder:
    return Recorder(file, KEEP)  # type: ignore[arg-type]  # a stand-in


async def written(recorder: Recorder) -> None:
    assert recorder._writing is not None
    await recorder._writing


def test_what_was_told_can_be_read_once_it_is_settled() -> None:
    file = File()

    async def tell() -> list[list[SessionNews]]:
        ours = recorder(file)
        await ours.settled()
        ours.take(SEEN)
        ours.take(STOPPED)
        await ours.settled()
        return list(file.batches)

    told = asyncio.run(tell())
    assert [one for batch in told for one in batch] == [SEEN, STOPPED]


def test_a_file_that_cannot_be_read_is_said_and_gives_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record = UsageRecord(tmp_path / "record")
    record.file.write_text("this is no database, and long enough to be taken for one" * 20)
    ours = Recorder(record, KEEP)
    assert asyncio.run(ours.past("ada", 5)) == []
    assert asyncio.run(ours.ended("ada", 12)) is None
    assert caplog.text.count("The record of sessions cannot be read") == 2


def test_the_hub_does_not_write_on_its_own_thread() -> None:
    file = File()

    async def tell() -> None:
        ours = recorder(file)
        ours.take(SEEN)
        await written(ours)

    asyncio.run(tell())
    assert file.batches == [[SEEN]]
    assert file.threads != {threading.get_ident()}


def test_a_session_that_is_seen_all_the_time_is_written_once_a_minute() -> None:
    file = File()

    async def tell() -> None:
        ours = recorder(file)
        for seconds in range(121):
            ours.take(replace(SEEN, seen=NOON + timedelta(seconds=seconds)))
        await written(ours)

    asyncio.run(tell())
    seen = [(news.seen - NOON).total_seconds() for batch in file.batches for news in batch]
    assert seen == [0, 60, 120]


def test_a_clock_that_is_set_back_does_not_stop_the_record() -> None:
    file = File()
    ahead = replace(SEEN, seen=NOON + timedelta(days=2))

    async def tell() -> None:
        ours = recorder(file)
        ours.take(ahead)
        ours.take(SEEN)
        await written(ours)

    asyncio.run(tell())
    assert file.batches == [[ahead, SEEN]]


def test_what_is_only_seen_again_is_written_together_with_what_comes_next() -> None:
    file = File()
    others = [replace(SEEN, session_id=f"{number}") for number in range(3)]
    later = [replace(one, seen=NOON + timedelta(minutes=1)) for one in others]

    async def tell() -> None:
        ours = recorder(file)
        for one in others:
            ours.take(one)
        await ours.settled()
        for one in later:
            ours.take(one)
            # Were it written by itself, this would be time for it.
            for _ in range(10):
                await asyncio.to_thread(bool)
        ours.take(STOPPED)
        await ours.settled()

    asyncio.run(tell())
    assert file.batches == [others, [*later, STOPPED]]


def test_what_is_only_seen_again_does_not_wait_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dsportal.usage.recorder._GATHER_SECONDS", 0.01)
    file = File()
    later = replace(SEEN, seen=NOON + timedelta(minutes=1))

    async def tell() -> None:
        ours = recorder(file)
        ours.take(SEEN)
        await ours.settled()
        ours.take(later)
        await written(ours)

    asyncio.run(tell())
    assert file.batches == [[SEEN], [later]]


def test_nobody_waits_for_what_is_only_seen_again_during_a_write() -> None:
    class SlowFile(File):
        def write(self, news: list[SessionNews]) -> None:
            begun.set()
            assert may_end.wait(20)
            super().write(news)

    begun, may_end = threading.Event(), threading.Event()
    file = SlowFile()
    other = replace(SEEN, session_id="b" * 32)
    later = [replace(one, seen=NOON + timedelta(minutes=1)) for one in (SEEN, other)]

    async def tell() -> None:
        ours = recorder(file)
        may_end.set()
        ours.take(SEEN)
        ours.take(other)
        await ours.settled()
        begun.clear()
        may_end.clear()
        ours.take(later[0])
        settled = asyncio.create_task(ours.settled())
        await asyncio.to_thread(begun.wait, 20)
        ours.take(later[1])
        may_end.set()
        await settled

    asyncio.run(tell())
    assert file.batches == [[SEEN, other], [later[0]], [later[1]]]


def test_who_reads_when_all_is_written_hurries_nobody() -> None:
    file = File()

    async def tell() -> None:
        ours = recorder(file)
        ours.take(SEEN)
        await ours.settled()
        await ours.settled()
        ours.take(replace(SEEN, seen=NOON + timedelta(minutes=1)))
        for _ in range(10):
            await asyncio.to_thread(bool)

    asyncio.run(tell())
    assert file.batches == [[SEEN]]


def test_an_end_is_written_whenever_it_comes() -> None:
    file = File()

    async def tell() -> None:
        ours = recorder(file)
        ours.take(SEEN)
        ours.take(STOPPED)
        await written(ours)

    asyncio.run(tell())
    assert [news for batch in file.batches for news in batch] == [SEEN, STOPPED]


def test_what_could_not_be_written_is_written_later(caplog: pytest.LogCaptureFixture) -> None:
    file = File(fails=True)
    other = replace(SEEN, session_id="b" * 32)

    async def tell() -> None:
        ours = recorder(file)
        for news in (SEEN, STOPPED):
            ours.take(news)
            await written(ours)
        file.fails = False
        ours.take(other)
        await written(ours)

    with caplog.at_level(logging.WARNING):
        asyncio.run(tell())
    assert file.batches == [[SEEN, STOPPED, other]]
    fails, works = [record.getMessage() for record in caplog.records]
    assert fails.endswith("cannot be written: disk I/O error")
    assert works.endswith("written again")


def test_old_rows_are_looked_for_now_and_then_only() -> None:
    file = File()

    async def tell() -> None:
        ours = recorder(file)
        for number in range(3):
            ours.take(replace(SEEN, session_id=f"{number}"))
            await written(ours)

    asyncio.run(tell())
    assert file.pruned == 1


def test_the_configuration_does_not_copy_the_recorder() -> None:
    observer = recorder(File()).observer()
    assert deepcopy(observer) is observer
