"""How often the database is asked for a user."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from jupyterhub import orm
from sqlalchemy import event

from dsportal.hub.patches import user_lookups


@pytest.fixture
def database() -> Iterator[Any]:
    """A hub's, with two users in a group."""
    session = orm.new_session_factory("sqlite:///:memory:")()
    group = orm.Group(name="staff")
    for name in ("ada", "bob"):
        user = orm.User(name=name, cookie_id=f"cookie of {name}")
        user.groups.append(group)
        session.add(user)
    session.commit()
    session.expunge_all()
    yield session
    session.close()


@contextmanager
def statements(database: Any) -> Iterator[list[str]]:
    told: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        told.append(statement)

    engine = database.get_bind()
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield told
    finally:
        event.remove(engine, "before_cursor_execute", note)


def test_a_user_is_found_with_all_that_jupyterhub_loads(database: Any) -> None:
    found = user_lookups.one_user(database, orm.User.name == "ada")
    with statements(database) as asked:
        assert [group.name for group in found.groups] == ["staff"]
        assert (found.roles, found.shared_with_me) == ([], [])
    assert asked == []
    assert user_lookups.one_user(database, orm.User.cookie_id == "cookie of bob").name == "bob"
    assert user_lookups.one_user(database, orm.User.name == "eve") is None


def test_who_is_known_is_asked_for_once(database: Any) -> None:
    kept = user_lookups.one_user(database, orm.User.name == "ada")
    with statements(database) as asked:
        user_lookups.one_user(database, orm.User.name == "ada")
    assert len([one for one in asked if "FROM" in one]) == 1
    # Upstream's own, for which this stands.
    with statements(database) as asked:
        database.query(orm.User).filter(orm.User.name == "ada").first()
    assert len([one for one in asked if "FROM" in one]) > 3
    assert kept.name == "ada"
