"""Whom PAM is asked about, and that looks do not wait for logins; a stand-in for PAM."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pamela
import pytest

from dsportal.authentication import pam
from dsportal.authentication.errors import Refused
from dsportal.authentication.pam import PamAuthenticator

EXPIRED = 13


class StandIn:
    """Answers a password once it may; every account has expired."""

    def __init__(self) -> None:
        self.all_wait, self.may_answer = threading.Barrier(3), threading.Event()
        self.asked: list[str] = []
        self.looks: list[str] = []

    def authenticate(self, name: str, *about: Any, **more: Any) -> None:
        self.asked.append(name)
        if not self.may_answer.is_set():
            self.all_wait.wait(20)
        assert self.may_answer.wait(20)

    def check_account(self, name: str, **more: Any) -> None:
        self.looks.append(name)
        raise pamela.PAMError(errno=EXPIRED)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made = StandIn()
    monkeypatch.setattr(pamela, "authenticate", made.authenticate)
    monkeypatch.setattr(pamela, "check_account", made.check_account)
    yield made
    made.may_answer.set()


def test_a_closed_account_is_refused_while_wrong_passwords_hold_all_logins(
    stand_in: StandIn,
) -> None:
    authenticator: Any = PamAuthenticator(login_timeout=5.0, executor=ThreadPoolExecutor(2))

    async def crowd() -> Any:
        data = {"username": "nobody-here", "password": "wrong"}
        guesses = [asyncio.create_task(authenticator.authenticate(None, data)) for _ in range(4)]
        await asyncio.to_thread(stand_in.all_wait.wait, 20)
        found = await authenticator.refresh_user(SimpleNamespace(name="mallory"))
        stand_in.may_answer.set()
        await asyncio.gather(*guesses, return_exceptions=True)
        return found

    assert asyncio.run(crowd()) is False


def test_one_look_is_for_all_who_wait_for_it(stand_in: StandIn) -> None:
    authenticator: Any = PamAuthenticator()

    async def crowd() -> list[Any]:
        mallory = SimpleNamespace(name="mallory")
        return await asyncio.gather(*(authenticator.refresh_user(mallory) for _ in range(50)))

    assert set(asyncio.run(crowd())) == {False}
    assert stand_in.looks == ["mallory"]


def test_nobody_learns_whether_a_password_is_roots(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, minimum_uid: int) -> None:
        raise Refused(f"{name} has the number 0, below minimum_uid = {minimum_uid}")

    monkeypatch.setattr(pam, "refuse_unfit", refuse)
    stand_in.may_answer.set()
    data = {"username": "root", "password": "right"}
    assert asyncio.run(PamAuthenticator().authenticate(None, data)) is None
    assert stand_in.asked == []
