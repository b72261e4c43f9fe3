import asyncio
import socket
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from jupyterhub import orm
from sqlalchemy import select

from dsportal.hub import database, postgresql
from dsportal.hub.breaker import Breaker, DatabaseAway
from dsportal.hub.patches import database_outage
from dsportal.hub.patches.database_outage import DatabaseSession


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "hub.sqlite")


@pytest.fixture
def session(file: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseSession]:
    """The hub's session, with ada in it."""
    monkeypatch.setattr(orm, "new_session_factory", orm.new_session_factory)
    database_outage._install_session(Breaker(database.sqlite_probe(file), is_asked_first=False))
    made = orm.new_session_factory(f"sqlite:///{file}", **database.sqlite_options())()
    made.add(orm.User(name="ada"))
    made.commit()
    yield made
    made.close()
    made.bind.dispose()


def ada(session: DatabaseSession) -> orm.User:
    found = orm.User.find(session, "ada")
    assert found
    return found


def admins(file: str) -> list[str]:
    with closing(sqlite3.connect(file)) as one:
        return [name for (name,) in one.execute("SELECT name FROM users WHERE admin")]


@contextmanager
def locked(file: str) -> Iterator[None]:
    """Hold the file, as somebody's sqlite3 would."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def is_over(session: DatabaseSession) -> None:
    """Wait until the hub has found by itself that its database is back."""
    async with asyncio.timeout(20):
        await session.breaker.wait()
    assert not session.breaker.is_open


def test_what_a_locked_file_does_not_take_is_written_later(
    file: str, session: DatabaseSession
) -> None:
    async def change() -> list[str]:
        user = ada(session)
        with locked(file):
            user.admin = True
            session.commit()
            before = admins(file)
            # As JupyterHub does at the end of each request that left something unwritten.
            session.rollback()
        await is_over(session)
        return before

    assert asyncio.run(change()) == []
    assert admins(file) == ["ada"]


def test_nothing_is_written_while_another_may_have_become_the_hub(
    file: str, session: DatabaseSession
) -> None:
    is_hub = False

    def check() -> None:
        if not is_hub:
            raise DatabaseAway

    async def change() -> list[str]:
        nonlocal is_hub
        user = ada(session)
        session.breaker.check_writer = check
        user.admin = True
        session.commit()
        # The database answers all the while.
        await asyncio.sleep(0.5)
        assert session.breaker.is_open
        before = admins(file)
        is_hub = True
        await is_over(session)
        return before

    assert asyncio.run(change()) == []
    assert admins(file) == ["ada"]


def test_what_is_changed_while_the_database_is_away_is_not_lost(
    file: str, session: DatabaseSession
) -> None:
    async def change() -> None:
        user = ada(session)
        with locked(file):
            user.admin = True
            session.commit()
            user.admin = False
            session.commit()
            user.name = "lovelace"
            session.commit()
        await is_over(session)

    asyncio.run(change())
    assert admins(file) == []
    assert orm.User.find(session, "lovelace")


def test_of_what_is_owed_only_a_change_to_what_is_gone_meanwhile_is_dropped(
    file: str, session: DatabaseSession, caplog: pytest.LogCaptureFixture
) -> None:
    session.add_all([orm.User(name="grace"), orm.User(name="hedy")])
    session.commit()
    found = {name: orm.User.find(session, name) for name in ("ada", "grace", "hedy")}
    session.delete(found["hedy"])
    found["ada"].admin = found["grace"].admin = True
    with closing(sqlite3.connect(file)) as other:
        other.execute("DELETE FROM users WHERE name IN ('ada', 'hedy')")
        other.commit()
    assert session.settle()
    assert admins(file) == ["grace"]
    assert caplog.text.count("A change to a row of users that is gone is dropped") == 2


def test_what_was_new_when_the_database_went_keeps_nobody_waiting(
    session: DatabaseSession, caplog: pytest.LogCaptureFixture
) -> None:
    session.breaker = Breaker(lambda: None, is_asked_first=True)
    session.breaker.settle = session.settle

    async def change() -> None:
        known = ada(session)
        session.add(grace := orm.User(name="grace"))
        # As a query does whose answer is needed before the commit.
        session.flush()
        grace.admin = known.admin = True
        session.breaker.open("the connection is gone")
        session.commit()
        await is_over(session)

    asyncio.run(asyncio.wait_for(change(), 5))
    assert ada(session).admin
    assert orm.User.find(session, "grace") is None
    assert "A change to a row of users that is gone is dropped" in caplog.text


@pytest.mark.parametrize("error", [OSError(), OSError("Gone.")])
def test_a_probe_that_fails_is_trouble_with_or_without_words(error: OSError) -> None:
    def probe() -> None:
        raise error

    assert asyncio.run(Breaker(probe, is_asked_first=False).trouble()) == (str(error) or "OSError")


def test_threads_that_others_keep_busy_are_no_trouble_of_the_databases() -> None:
    async def trouble() -> str | None:
        loop, is_over = asyncio.get_running_loop(), threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        waiting = loop.run_in_executor(None, is_over.wait)
        try:
            return await Breaker(lambda: None, is_asked_first=True).trouble()
        finally:
            is_over.set()
            await waiting

    assert asyncio.run(trouble()) is None


def test_what_is_deleted_while_the_database_is_away_is_gone_later(
    file: str, session: DatabaseSession
) -> None:
    async def delete() -> None:
        user = ada(session)
        with locked(file):
            session.delete(user)
            session.commit()
        await is_over(session)

    asyncio.run(delete())
    assert orm.User.find(session, "ada") is None


def test_what_is_deleted_is_gone_although_it_could_not_be_written_at_once(
    file: str, session: DatabaseSession
) -> None:
    session.add(orm.User(name="grace"))
    session.commit()

    async def delete() -> None:
        user, grace = ada(session), orm.User.find(session, "grace")
        with locked(file):
            session.delete(user)
            grace.admin = True
            session.commit()
            # As when somebody else takes the file once more between the probe and the hub.
            assert not session.settle()
        await is_over(session)

    asyncio.run(delete())
    assert orm.User.find(session, "ada") is None
    assert admins(file) == ["grace"]


def test_a_new_row_is_refused_while_the_database_is_away(
    file: str, session: DatabaseSession
) -> None:
    async def add() -> None:
        with locked(file):
            session.add(orm.User(name="grace"))
            with pytest.raises(DatabaseAway):
                session.commit()
        await is_over(session)
        session.commit()

    asyncio.run(add())
    assert orm.User.find(session, "grace") is None


def test_others_read_while_the_file_is_locked(file: str, session: DatabaseSession) -> None:
    async def read() -> list[str]:
        user = ada(session)
        with locked(file):
            user.admin = True
            session.commit()
            names = list(session.scalars(select(orm.User.name)))
        await is_over(session)
        return names

    assert asyncio.run(read()) == ["ada"]


def test_an_absence_is_logged_once(
    file: str, session: DatabaseSession, caplog: pytest.LogCaptureFixture
) -> None:
    async def change() -> None:
        user = ada(session)
        with locked(file):
            for is_admin in (True, False, True):
                user.admin = is_admin
                session.commit()
        await is_over(session)

    asyncio.run(change())
    said = [record.message for record in caplog.records]
    assert said == [
        "The database does not answer: database is locked",
        "The database answers again",
    ]


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and says nothing; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"postgresql://hub@127.0.0.1:{listener.getsockname()[1]}/hub"


async def ticks_during(wait: Callable[[], Awaitable[object]]) -> int:
    """Count how often others got their turn on the loop."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    with pytest.raises(DatabaseAway):
        await wait()
    ticking.cancel()
    return ticks


def test_the_loop_does_not_wait_for_a_server_that_says_nothing(
    silent: str, session: DatabaseSession
) -> None:
    async def ask() -> int:
        breaker = Breaker(postgresql.Probe(silent), is_asked_first=True)
        session.breaker = breaker
        ticks = await ticks_during(lambda: database_outage.ensure_answer(session))
        assert breaker.is_open
        with pytest.raises(DatabaseAway):
            session.scalar(select(1))
        assert breaker._mending is not None
        breaker._mending.cancel()
        return ticks

    assert asyncio.run(ask()) > 10


def test_every_session_of_the_hub_is_such_a_one(session: DatabaseSession) -> None:
    assert isinstance(session, DatabaseSession)
