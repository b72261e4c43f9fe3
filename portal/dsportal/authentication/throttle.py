"""The rate limit on logins: failures cost a delay that grows, and each is logged."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from logging import Logger, LoggerAdapter
from typing import Any

from tornado import web

from dsportal.authentication import words
from dsportal.authentication.attempts import Attempts
from dsportal.authentication.names import shown
from dsportal.authentication.origin import household, origin

TOO_MANY = 429
MOST_WAITED_SECONDS = 20.0
"""For those who tried before and have no answer yet; a browser waits longer."""
MOST_WAITING = 500
"""From one address: each end lets all of them look again, and the hub does nothing else then."""

AuthModel = dict[str, Any] | None
Log = Logger | LoggerAdapter[Logger]


@dataclass(frozen=True)
class LoginAttempt:
    """A login attempt that the throttle has let through."""

    throttle: "LoginThrottle"
    typed: str
    name: str
    """The one Unix name that was meant; empty where it is none."""
    address: str

    async def answer(self, login: Awaitable[AuthModel]) -> AuthModel:
        """Give what the login gives, and remember how it ended."""
        try:
            found = await login
        except BaseException as error:
            # The directory is away, or the right password of somebody who is not admitted. To try
            # a locked account costs what a wrong password does.
            is_free = isinstance(error, web.HTTPError) and error.status_code != TOO_MANY
            self._tell(self._attempts.withdraw if is_free else self._attempts.failed)
            raise
        if found is None:
            self.throttle.log.warning(
                "Login of %s from %s refused: wrong name or password",
                shown(self.typed),
                self.address,
            )
        self._tell(self._attempts.failed if found is None else self._attempts.succeeded)
        return found

    @property
    def _attempts(self) -> Attempts:
        return self.throttle.attempts

    def _tell(self, method: Callable[[str, str, float], None]) -> None:
        home = household(self.address)
        method(self.name, home, self.throttle.now())
        self.throttle.note_end(home)


@dataclass
class _Queue:
    """The logins from one address that wait for others."""

    waiting: int = 0
    an_end: asyncio.Event = field(default_factory=asyncio.Event)


class LoginThrottle:
    """Lets attempts in, one after the other where they fail."""

    def __init__(
        self, log: Log, proxies: Collection[str] = (), now: Callable[[], float] = time.monotonic
    ) -> None:
        self.log, self.now = log, now
        self.attempts = Attempts()
        self._proxies = proxies
        self._said = -math.inf
        self._queues: dict[str, _Queue] = {}

    async def attempt(self, handler: Any, typed: str, name: str) -> LoginAttempt:
        """Let somebody try, after those before who have not ended yet.

        Raises an HTTP error that says how long to wait: where others have failed, take too long, or
        are too many.
        """
        address = self._address(handler.request)
        home = household(address)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + MOST_WAITED_SECONDS
        while (wait := self.attempts.begin(name, home, now := self.now())) > 0:
            seconds = math.ceil(wait)
            if not self.attempts.may_begin_after_others(name, home, now):
                self._say_who_waits(typed, address, f"held up for {seconds} s: too many failures")
                raise too_many(words.too_many(seconds), seconds)
            if loop.time() >= deadline or self._is_full(home):
                self._say_who_waits(
                    typed, address, "turned away: those before it have no answer yet"
                )
                raise too_many(words.too_many_at_once(seconds), seconds)
            # The pause may be over before any of them ends.
            await self._an_end(home, min(deadline, loop.time() + wait))
        return LoginAttempt(self, typed, name, address)

    def note_end(self, home: str) -> None:
        """Let those look again who wait there for the ends of others, in the order they came."""
        if home in self._queues:
            self._queues[home].an_end.set()
            self._queues[home].an_end = asyncio.Event()

    def _is_full(self, home: str) -> bool:
        return home in self._queues and self._queues[home].waiting >= MOST_WAITING

    async def _an_end(self, home: str, latest: float) -> None:
        queue = self._queues.setdefault(home, _Queue())
        queue.waiting += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(latest):
                    await queue.an_end.wait()
        finally:
            queue.waiting -= 1
            if not queue.waiting:
                self._queues.pop(home, None)

    def _say_who_waits(self, typed: str, address: str, said: str) -> None:
        # At most one line a second: a stranger must not fill the log.
        if self.now() - self._said < 1:
            return
        self._said = self.now()
        self.log.warning("Login of %s from %s %s", shown(typed), address, said)

    def _address(self, request: Any) -> str:
        socket = request.connection.stream.socket
        if socket is None:
            raise web.HTTPError(400, "The browser is gone.")
        forwarded = request.headers.get("X-Forwarded-For")
        return origin(socket.getpeername()[0], socket.getsockname()[0], forwarded, self._proxies)


def too_many(said: str, seconds: int) -> web.HTTPError:
    """Say when to come back, in words and as RFC 9110 has it."""
    error = web.HTTPError(TOO_MANY, said)
    error.headers = {"Retry-After": str(seconds)}  # type: ignore[attr-defined]  # JupyterHub's
    return error
