"""The hub's record of sessions, in a real file."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dsportal.usage import record as record_module
from dsportal.usage.record import SCHEMA_VERSION, NewerRecordError, UsageRecord
from dsportal.usage.report import Use
from jupyterhub_gpu_slurm.session.observation import Ending, SessionNews

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
SEEN = SessionNews(
    session_id="a" * 32,
    user="ada",
    groups=("ml", "bio"),
    gpus=2,
    job_id=12,
    partition="sxm2",
    node="node001",
    started=NOON,
    seen=NOON + MINUTE,
)
STOPPED = replace(SEEN, seen=NOON + 31 * MINUTE, ending=Ending.STOPPED, ended=NOON + 30 * MINUTE)
GONE = replace(SEEN, seen=NOON + 99 * MINUTE, started=None, ending=Ending.UNKNOWN)


@pytest.fixture
def record(tmp_path: Path) -> UsageRecord:
    return UsageRecord.of_hub(str(tmp_path))


def uses(record: UsageRecord) -> list[Use]:
    return record.uses(NOON - 400 * DAY, NOON + 400 * DAY)


def ended(record: UsageRecord) -> datetime | None:
    (one,) = uses(record)
    return one.ended


def test_there_is_nothing_where_there_is_no_file(record: UsageRecord) -> None:
    assert uses(record) == []


def test_a_session_that_runs_is_there(record: UsageRecord) -> None:
    record.write([SEEN])
    assert uses(record) == [
        Use("ada", frozenset({"ml", "bio"}), 2, NOON, NOON + MINUTE, None, True, 12)
    ]


def test_what_is_told_twice_is_there_once(record: UsageRecord) -> None:
    for _ in range(2):
        record.write([SEEN, STOPPED])
    assert ended(record) == NOON + 30 * MINUTE


def test_a_session_that_is_seen_again_goes_on(record: UsageRecord) -> None:
    record.write([SEEN, replace(SEEN, seen=NOON + 5 * MINUTE, groups=("other",))])
    (one,) = uses(record)
    assert (one.seen, one.groups) == (NOON + 5 * MINUTE, frozenset({"ml", "bio"}))


def test_a_late_word_does_not_take_the_end_back(record: UsageRecord) -> None:
    record.write([SEEN, STOPPED, replace(SEEN, seen=NOON + 32 * MINUTE)])
    assert ended(record) == NOON + 30 * MINUTE


def test_a_session_whose_end_nobody_saw_ended_when_it_was_last_seen(record: UsageRecord) -> None:
    record.write([SEEN, GONE])
    assert ended(record) == NOON + MINUTE


def test_a_clock_that_was_ahead_for_a_moment_makes_no_session_longer(record: UsageRecord) -> None:
    record.write([replace(SEEN, seen=NOON + 2 * DAY), replace(SEEN, seen=NOON + 3 * MINUTE), GONE])
    assert ended(record) == NOON + 3 * MINUTE


def test_a_session_that_only_its_end_tells_of_is_there(record: UsageRecord) -> None:
    record.write([STOPPED])
    (one,) = uses(record)
    assert (one.started, one.ended) == (NOON, NOON + 30 * MINUTE)


def test_an_end_without_a_beginning_is_nothing(record: UsageRecord) -> None:
    record.write([GONE])
    assert uses(record) == []


def test_a_session_that_no_hub_has_seen_for_a_day_is_closed(record: UsageRecord) -> None:
    record.write([SEEN])
    record.prune(NOON + 23 * 60 * MINUTE, keep=90 * DAY)
    assert ended(record) is None
    record.prune(NOON + 2 * DAY, keep=90 * DAY)
    assert ended(record) == NOON + MINUTE


def test_one_that_was_closed_so_and_is_seen_again_is_open(record: UsageRecord) -> None:
    record.write([SEEN])
    record.prune(NOON + 2 * DAY, keep=90 * DAY)
    record.write([replace(SEEN, seen=NOON + 2 * DAY)])
    assert ended(record) is None


def test_what_is_too_old_is_forgotten(record: UsageRecord) -> None:
    other = replace(SEEN, session_id="b" * 32, started=NOON + 80 * DAY, seen=NOON + 80 * DAY)
    record.write([SEEN, STOPPED, other])
    record.prune(NOON + 91 * DAY, keep=90 * DAY)
    assert [one.started for one in uses(record)] == [NOON + 80 * DAY]


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [(-9, -1, 0), (-9, 1, 1), (10, 20, 1), (29, 90, 1), (31, 90, 0)],
)
def test_only_what_touches_the_span_is_read(
    record: UsageRecord, since: int, until: int, found: int
) -> None:
    record.write([STOPPED])
    assert len(record.uses(NOON + since * MINUTE, NOON + until * MINUTE)) == found


def test_a_file_that_is_being_written_can_be_read(record: UsageRecord) -> None:
    record.write([SEEN])
    with closing(sqlite3.connect(record.file, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert len(uses(record)) == 1
        writer.execute("ROLLBACK")


def test_what_is_over_is_told_the_last_to_end_first(record: UsageRecord) -> None:
    later = replace(STOPPED, session_id="b" * 32, job_id=13, ended=NOON + DAY, seen=NOON + DAY)
    running = replace(SEEN, session_id="c" * 32, job_id=14)
    record.write([STOPPED, later, running, replace(later, session_id="d" * 32, user="eve")])
    assert [one.job_id for one in record.past("ada", 5)] == [13, 12]
    assert [one.job_id for one in record.past("ada", 1)] == [13]


def test_one_that_is_over_is_found_by_its_user_and_job(record: UsageRecord) -> None:
    record.write([STOPPED])
    found = record.ended("ada", 12)
    assert found is not None
    assert (found.ending, found.node, found.ended) == (Ending.STOPPED, "node001", STOPPED.ended)
    assert record.ended("eve", 12) is None
    assert record.ended("ada", 13) is None


def test_one_that_runs_is_not_over(record: UsageRecord) -> None:
    record.write([SEEN])
    assert record.ended("ada", 12) is None
    assert record.past("ada", 5) == []


def test_what_was_chosen_is_told_of_one_that_is_over(record: UsageRecord) -> None:
    chosen = {"gpus": 2, "hours": 1.5, "gpu_type": "v100"}
    record.write([replace(SEEN, options=chosen), replace(STOPPED, options=chosen)])
    (found,) = record.past("ada", 5)
    assert found.options == chosen


def test_one_that_is_over_says_which_of_the_users_it_was(record: UsageRecord) -> None:
    record.write([replace(SEEN, name="two"), replace(STOPPED, name="two")])
    assert [one.name for one in record.past("ada", 5)] == ["two"]
    found = record.ended("ada", 12)
    assert found is not None
    assert found.name == "two"


@pytest.mark.parametrize(
    ("column", "without", "other"), [("options", {}, {"gpus": 1}), ("name", "", "two")]
)
def test_a_record_of_an_older_release_gets_a_place_for_what_is_new(
    record: UsageRecord, column: str, without: object, other: object
) -> None:
    running = replace(SEEN, session_id="b" * 32, job_id=13)
    record.write([STOPPED, running])
    with closing(sqlite3.connect(record.file)) as database:
        database.execute(f"ALTER TABLE sessions DROP COLUMN {column}")
    (found,) = record.past("ada", 5)
    assert (found.job_id, getattr(found, column)) == (12, without)
    # The hub knows it of one that goes on.
    new: dict[str, Any] = {column: other}
    over = replace(STOPPED, session_id="b" * 32, job_id=13)
    record.write([replace(running, **new), replace(over, **new)])
    assert {one.job_id: getattr(one, column) for one in record.past("ada", 5)} == {
        13: other,
        12: without,
    }


def test_two_that_open_an_older_record_at_once_both_read_it(
    record: UsageRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    record.write([STOPPED])
    with closing(sqlite3.connect(record.file)) as database:
        database.execute("ALTER TABLE sessions DROP COLUMN name")
    looks: list[list[str]] = []
    lacking = record_module._columns_lacking

    def look(database: sqlite3.Connection) -> list[str]:
        found = lacking(database)
        looks.append(found)
        if len(looks) == 1:
            # Another comes between the first look and what follows from it.
            assert len(record.past("ada", 5)) == 1
        return found

    monkeypatch.setattr(record_module, "_columns_lacking", look)
    assert len(record.past("ada", 5)) == 1


@pytest.mark.parametrize(("is_shared", "mode"), [(False, "wal"), (True, "delete")])
def test_a_record_that_several_machines_see_has_no_log_of_writes_ahead(
    tmp_path: Path, is_shared: bool, mode: str
) -> None:
    record = UsageRecord.of_hub(str(tmp_path), is_shared=is_shared)
    record.write([STOPPED])
    assert len(record.past("ada", 5)) == 1
    with closing(sqlite3.connect(record.file)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == (mode,)


def version(record: UsageRecord) -> int:
    with closing(sqlite3.connect(record.file)) as database:
        return int(database.execute("PRAGMA user_version").fetchone()[0])


def set_version(record: UsageRecord, number: int) -> None:
    with closing(sqlite3.connect(record.file)) as database:
        database.execute(f"PRAGMA user_version = {number}")


def test_a_record_of_before_there_were_versions_is_read_and_gets_one(record: UsageRecord) -> None:
    record.write([SEEN])
    set_version(record, 0)
    (before,) = uses(record)
    record.write([STOPPED])
    assert version(record) == SCHEMA_VERSION
    assert (before.user, ended(record)) == ("ada", NOON + 30 * MINUTE)


def test_a_record_of_a_newer_release_is_left_as_it_is(record: UsageRecord) -> None:
    record.write([SEEN])
    set_version(record, SCHEMA_VERSION + 1)
    content = record.file.read_bytes()
    said = rf"has schema {SCHEMA_VERSION + 1}, .* reads up to {SCHEMA_VERSION}: deploy the release"
    for refused in (lambda: record.write([STOPPED]), lambda: uses(record)):
        with pytest.raises(NewerRecordError, match=said):
            refused()
    assert record.file.read_bytes() == content
