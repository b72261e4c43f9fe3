"""The rate limit on logins: failures cost a delay that grows, and each is logged."""

import math
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from logging import Logger, LoggerAdapter
from typing import Any

from tornado import web

from dsportal.authentication import words
from dsportal.authentication.attempts import Attempts
from dsportal.authentication.names import shown
from dsportal.authentication.origin import household, origin

TOO_MANY = 429

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
        except web.HTTPError as error:
            # The directory is away, or the right password of somebody who is not admitted. To try
            # a locked account costs what a wrong password does.
            if error.status_code != TOO_MANY:
                self._tell(self.throttle.attempts.withdraw)
            raise
        if found is None:
            self.throttle.log.warning(
                "Login of %s from %s refused: wrong name or password",
                shown(self.typed),
                self.address,
            )
        else:
            self._tell(self.throttle.attempts.succeeded)
        return found

    def _tell(self, method: Callable[[str, str, float], None]) -> None:
        method(self.name, household(self.address), self.throttle.now())


class LoginThrottle:
    """Lets attempts in, one after the other where they fail."""

    def __init__(
        self, log: Log, proxies: Collection[str] = (), now: Callable[[], float] = time.monotonic
    ) -> None:
        self.log, self.now = log, now
        self.attempts = Attempts()
        self._proxies = proxies
        self._said = -math.inf

    def attempt(self, handler: Any, typed: str, name: str) -> LoginAttempt:
        """Let somebody try; raises an HTTP error that says how long to wait."""
        address = self._address(handler.request)
        wait = self.attempts.begin(name, household(address), self.now())
        if wait > 0:
            self._say_who_waits(typed, address, math.ceil(wait))
            raise too_many(math.ceil(wait))
        return LoginAttempt(self, typed, name, address)

    def _say_who_waits(self, typed: str, address: str, seconds: int) -> None:
        # At most one line a second: a stranger must not fill the log.
        if self.now() - self._said < 1:
            return
        self._said = self.now()
        self.log.warning(
            "Login of %s from %s held up for %d s: too many failures",
            shown(typed),
            address,
            seconds,
        )

    def _address(self, request: Any) -> str:
        socket = request.connection.stream.socket
        if socket is None:
            raise web.HTTPError(400, "The browser is gone.")
        forwarded = request.headers.get("X-Forwarded-For")
        return origin(socket.getpeername()[0], socket.getsockname()[0], forwarded, self._proxies)


def too_many(seconds: int) -> web.HTTPError:
    """Say when to come back, in words and as RFC 9110 has it."""
    error = web.HTTPError(TOO_MANY, words.too_many(seconds))
    error.headers = {"Retry-After": str(seconds)}  # type: ignore[attr-defined]  # JupyterHub's
    return error
