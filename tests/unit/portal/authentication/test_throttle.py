"""What an attempt to log in costs, by how it ended."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.web import HTTPError

from dsportal.authentication.attempts import PAIR
from dsportal.authentication.throttle import TOO_MANY, LoginThrottle

LOCKED = HTTPError(TOO_MANY, "The account is locked.")
AWAY = HTTPError(503, "The directory does not answer.")
NOT_ADMITTED = HTTPError(403, "Your account is closed.")


@pytest.fixture
def throttle() -> LoginThrottle:
    """One whose clock stands still."""
    return LoginThrottle(logging.getLogger("test"), now=lambda: 0.0)


def browser(address: str = "192.0.2.7") -> Any:
    socket = SimpleNamespace(
        getpeername=lambda: (address, 50000), getsockname=lambda: ("192.0.2.1", 443)
    )
    connection = SimpleNamespace(stream=SimpleNamespace(socket=socket))
    return SimpleNamespace(request=SimpleNamespace(connection=connection, headers={}))


def tried(throttle: LoginThrottle, times: int, ends: HTTPError | None) -> None:
    """Log in so many times; the login fails with an error, or says that the password is wrong."""

    async def login() -> None:
        if ends is not None:
            raise ends

    for _ in range(times):
        attempt = throttle.attempt(browser(), "ada", "ada")
        try:
            asyncio.run(attempt.answer(login()))
        except HTTPError as error:
            assert error is ends  # noqa: PT017  what the login said is passed on


@pytest.mark.parametrize("ends", [None, LOCKED], ids=["wrong", "locked"])
def test_a_wrong_password_and_a_locked_account_cost_the_same(
    throttle: LoginThrottle, ends: HTTPError | None
) -> None:
    tried(throttle, PAIR.free, ends)
    with pytest.raises(HTTPError) as raised:
        throttle.attempt(browser(), "ada", "ada")
    assert raised.value.status_code == TOO_MANY
    assert vars(raised.value)["headers"] == {"Retry-After": "3"}


@pytest.mark.parametrize("ends", [AWAY, NOT_ADMITTED], ids=["away", "not admitted"])
def test_what_tells_nothing_of_the_password_costs_nothing(
    throttle: LoginThrottle, ends: HTTPError
) -> None:
    tried(throttle, 3 * PAIR.free, ends)
    throttle.attempt(browser(), "ada", "ada")
