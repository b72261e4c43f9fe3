"""Who else came into a session."""

import asyncio
from types import SimpleNamespace
from typing import Any

from dsportal.session.page.visits import Visits
from dsportal.session.web import bodies


class Login:
    """A login that lets in whom it is told to."""

    def __init__(self) -> None:
        self.lets_in: str | None = None

    async def get_user(self, handler: Any) -> Any:
        return None if self.lets_in is None else SimpleNamespace(username=self.lets_in)


def test_only_others_are_noted_and_each_once_an_hour() -> None:
    now = [1_000_000.0]
    visits = Visits("ada", now=lambda: now[0])
    for name, pause in (("ada", 1), ("bob", 1), ("bob", 2000), ("eve", 700), ("bob", 3700)):
        visits.note(name)
        now[0] += pause
    assert [visit["name"] for visit in visits.tell()["visits"]] == ["bob", "eve"]
    visits.note("bob")
    assert [visit["name"] for visit in visits.tell()["visits"]] == ["bob", "eve", "bob"]


def test_the_login_tells_of_those_whom_it_lets_in() -> None:
    login, visits = Login(), Visits("ada")
    bodies.watch(login, visits.note)
    for name in (None, "ada", "bob"):
        login.lets_in = name
        user = asyncio.run(login.get_user(None))
        assert getattr(user, "username", None) == name
    assert [visit["name"] for visit in visits.tell()["visits"]] == ["bob"]
