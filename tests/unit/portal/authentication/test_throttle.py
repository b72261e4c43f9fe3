"""What an attempt to log in costs, by how it ended."""

import asyncio
import contextlib
import logging
import re
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.web import HTTPError

from dsportal.authentication import words
from dsportal.authentication.attempts import ADDRESS, PAIR
from dsportal.authentication.names import shown
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
        attempt = asyncio.run(throttle.attempt(browser(), "ada", "ada"))
        try:
            asyncio.run(attempt.answer(login()))
        except HTTPError as error:
            assert error is ends  # noqa: PT017  what the login said is passed on


async def logged_in(
    throttle: LoginThrottle, typed: str, login: Coroutine[Any, Any, Any], name: str = "ada"
) -> Any:
    with contextlib.closing(login):
        return await (await throttle.attempt(browser(), typed, name)).answer(login)


def crowd(throttle: LoginThrottle, seconds: float, answer: dict[str, Any] | None) -> list[Any]:
    """Log in three times as many people at once as may fail, with a slow directory."""

    async def login() -> dict[str, Any] | None:
        await asyncio.sleep(seconds)
        return answer

    async def all_at_once() -> list[Any]:
        names = [f"user{number}" for number in range(3 * ADDRESS.free)]
        logins = (logged_in(throttle, name, login(), name) for name in names)
        return await asyncio.gather(*logins, return_exceptions=True)

    return asyncio.run(all_at_once())


def test_many_who_log_in_at_once_wait_for_each_other(
    throttle: LoginThrottle, caplog: pytest.LogCaptureFixture
) -> None:
    assert crowd(throttle, 0.05, {"name": "somebody"}) == [{"name": "somebody"}] * 3 * ADDRESS.free
    assert not caplog.messages


def test_many_guesses_at_once_are_no_more_than_may_fail(throttle: LoginThrottle) -> None:
    found = crowd(throttle, 0.05, None)
    assert found.count(None) == ADDRESS.free
    refused = [one for one in found if isinstance(one, HTTPError)]
    assert [one.status_code for one in refused] == [TOO_MANY] * (2 * ADDRESS.free)


def test_nobody_waits_for_ever_for_others(
    throttle: LoginThrottle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dsportal.authentication.throttle.MOST_WAITED_SECONDS", 0.05)
    refused = [one for one in crowd(throttle, 0.3, {"name": "a"}) if isinstance(one, HTTPError)]
    assert len(refused) == 2 * ADDRESS.free
    # No failure of anybody's, in words and for fail2ban.
    assert {one.log_message for one in refused} == {words.too_many_at_once(3)}
    (line,) = caplog.messages
    assert banned([f"[W 2026-11-28 00:19:50.123 JupyterHub throttle:44] {line}"]) == []


async def hung(throttle: LoginThrottle, address: str) -> list["asyncio.Future[Any]"]:
    """Begin as many logins as may fail; give the answers for which they wait."""
    answers = [asyncio.get_running_loop().create_future() for _ in range(ADDRESS.free)]
    for number, answer in enumerate(answers):
        attempt = await throttle.attempt(browser(address), "", f"user{number}")
        # The answer, which is kept, refers to the task.
        asyncio.ensure_future(attempt.answer(answer))  # noqa: RUF006
    await asyncio.sleep(0)
    return answers


def test_whoever_waits_for_others_goes_on_when_the_pause_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dsportal.authentication.attempts._FIRST_SECONDS", 0.1)

    async def main() -> None:
        throttle = LoginThrottle(logging.getLogger("test"))
        await hung(throttle, "192.0.2.7")
        await asyncio.wait_for(throttle.attempt(browser(), "ada", "ada"), timeout=10)

    asyncio.run(main())


def test_an_end_wakes_those_of_the_same_address_only(
    throttle: LoginThrottle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dsportal.authentication.attempts._FIRST_SECONDS", ADDRESS.longest_seconds)
    looks: list[str] = []
    begin = throttle.attempts.begin

    def seen(name: str, address: str, now: float) -> float:
        looks.append(address)
        return begin(name, address, now)

    async def main() -> None:
        here, there = "192.0.2.7", "198.51.100.9"
        answers = [*await hung(throttle, here), *await hung(throttle, there)]
        waiting = [
            asyncio.ensure_future(throttle.attempt(browser(address), "ada", "ada"))
            for address in (here, there)
        ]
        await asyncio.sleep(0)
        monkeypatch.setattr(throttle.attempts, "begin", seen)
        answers[0].set_result({"name": "user0"})
        await asyncio.wait_for(waiting[0], timeout=10)
        waiting[1].cancel()
        await asyncio.wait(waiting)
        assert looks == [here]
        assert not throttle._queues

    asyncio.run(main())


def test_more_than_may_wait_are_told_at_once(
    throttle: LoginThrottle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dsportal.authentication.throttle.MOST_WAITING", 10)
    found = crowd(throttle, 0.5, {"name": "somebody"})
    assert found.count({"name": "somebody"}) == ADDRESS.free + 10
    refused = [one for one in found if isinstance(one, HTTPError)]
    assert {one.log_message for one in refused} == {words.too_many_at_once(3)}


@pytest.mark.parametrize("ends", [None, LOCKED], ids=["wrong", "locked"])
def test_a_wrong_password_and_a_locked_account_cost_the_same(
    throttle: LoginThrottle, ends: HTTPError | None
) -> None:
    tried(throttle, PAIR.free, ends)
    with pytest.raises(HTTPError) as raised:
        asyncio.run(throttle.attempt(browser(), "ada", "ada"))
    assert raised.value.status_code == TOO_MANY
    assert vars(raised.value)["headers"] == {"Retry-After": "3"}


@pytest.mark.parametrize("ends", [AWAY, NOT_ADMITTED], ids=["away", "not admitted"])
def test_what_tells_nothing_of_the_password_costs_nothing(
    throttle: LoginThrottle, ends: HTTPError
) -> None:
    tried(throttle, 3 * PAIR.free, ends)
    asyncio.run(throttle.attempt(browser(), "ada", "ada"))


def test_a_login_that_succeeds_forgives_the_failures_before(throttle: LoginThrottle) -> None:
    async def succeed() -> dict[str, Any]:
        return {"name": "ada"}

    tried(throttle, PAIR.free - 1, None)
    asyncio.run(logged_in(throttle, "ada", succeed()))
    tried(throttle, PAIR.free, None)


def test_who_is_held_up_is_logged_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    throttle = LoginThrottle(logging.getLogger("test"), now=lambda: now[0])
    tried(throttle, PAIR.free, None)
    caplog.clear()
    for now[0] in (0.0, 0.5, 0.9, 1.0, 1.5):
        with pytest.raises(HTTPError):
            asyncio.run(throttle.attempt(browser(), "ada", "ada"))
    assert [message.partition(": ")[0] for message in caplog.messages] == [
        "Login of 'ada' from 192.0.2.7 held up for 3 s",
        "Login of 'ada' from 192.0.2.7 held up for 2 s",
    ]


PAGE = Path(__file__).resolve().parents[4] / "docs/how-to/log-messages.md"
# As fail2ban writes it out, but for names of hosts.
HOST = r"(?:::f{4,6}:)?(?P<host>[\d.]+)"


def banned(lines: list[str]) -> list[str]:
    """Return whom the page's pattern for fail2ban finds in the hub's log."""
    (pattern,) = re.findall("`([^`]*Login of[^`]*<HOST>[^`]*)`", PAGE.read_text(encoding="utf-8"))
    found = (re.search(pattern.replace("<HOST>", HOST), line) for line in lines)
    return [match["host"] for match in found if match]


@pytest.mark.parametrize("prefix", ["", "head jupyterhub[7]: "], ids=["file", "journal"])
@pytest.mark.parametrize(
    "typed",
    [
        "ada",
        "a from 10.0.0.1 held up",
        "' from 10.0.0.1 held up",
        "'\" from 10.0.0.1 held up",
        "a' from 10.0.0.1 refused: wron",
    ],
)
def test_nobody_types_another_address_into_the_log(
    throttle: LoginThrottle, caplog: pytest.LogCaptureFixture, prefix: str, typed: str
) -> None:
    for _ in range(PAIR.free + 1):
        with contextlib.suppress(HTTPError):
            asyncio.run(logged_in(throttle, typed, wrong()))
    messages = [*caplog.messages, f"Login of {shown(typed)} refused: no such name, or no password"]
    head = f"{prefix}[W 2026-11-28 00:19:50.123 JupyterHub throttle:44] "
    assert banned([head + message for message in messages]) == ["192.0.2.7"] * (PAIR.free + 1)


def test_nor_does_another_line_of_the_log() -> None:
    line = "Login of 'x' from 10.0.0.1 refused: wrong name or password"
    for head in (
        "[W 2026-11-28 00:19:50.123 JupyterHub base:861] Disallowing redirect: 'http://",
        "    [W 2026-11-28 00:19:50.123 JupyterHub throttle:44] ",
        "head jupyterhub[7]:     [W 2026-11-28 00:19:50.123 JupyterHub throttle:44] ",
        "[W 2026-11-28 00:19:50.123 JupyterHub base:2102] x [W 1 JupyterHub throttle:44] ",
    ):
        assert banned([head + line]) == []


async def wrong() -> None:
    """Say that the password is wrong."""
