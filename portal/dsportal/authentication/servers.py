"""Failover between the servers of a directory, which all hold the same.

The rule: the first server in the order of the settings is asked. Where it fails, or has said
nothing after ``next_server_seconds``, the next one is greeted as well, and so on; the first that
answers the greeting gets the question, and the password. A server that failed, or was silent for
so long, is asked last for a minute. So a password goes to one server at a time, and a login beside
a dead server takes ``next_server_seconds`` longer once a minute, however that server is dead.
"""

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from dsportal.authentication.connection import DirectoryConnection, LdapAccess
from dsportal.authentication.errors import DirectoryError, LimitExceeded, Refused

# For how long a server that failed is asked last.
_BAD_SERVER_SECONDS = 60.0
# Greetings under way at one moment, those that nobody waits for any more among them.
_GREETINGS = 64

Answer = TypeVar("Answer")


class Servers:
    """Puts questions to whichever server answers."""

    def __init__(self, access: LdapAccess, log: logging.Logger) -> None:
        self._access = access
        self._log = log
        self._failed_at: dict[str, float] = {}
        self._threads = ThreadPoolExecutor(_GREETINGS, "directory-greeting")

    def ask(self, question: Callable[[DirectoryConnection], Answer], deadline: float) -> Answer:
        """Put a question; a server that fails is followed by the next, until the deadline.

        The deadline is as ``time.monotonic`` tells time. Raises DirectoryError where none answers,
        LimitExceeded where one did so in part, and lets Refused pass: a no is an answer.
        """
        left, failures, kind = self._in_order(), dict[str, str](), DirectoryError
        while (connection := self._greeted(left, failures, deadline)) is not None:
            left.remove(connection.url)
            try:
                answer = question(connection)
            except Refused:
                raise
            except Exception as error:  # noqa: BLE001  # what ldap3 makes of a bad answer is open
                self._fail(connection.url, error, failures)
                kind = LimitExceeded if isinstance(error, LimitExceeded) else kind
            else:
                self._failed_at.pop(connection.url, None)
                return answer
            finally:
                connection.close()
        raise kind("; ".join(f"{url}: {why}" for url, why in failures.items()))

    def _in_order(self) -> list[str]:
        """List the servers in the order of the settings, those that failed lately at the end."""
        since = time.monotonic() - _BAD_SERVER_SECONDS
        return sorted(
            self._access.servers, key=lambda url: self._failed_at.get(url, float("-inf")) > since
        )

    def _greeted(
        self, left: list[str], failures: dict[str, str], deadline: float
    ) -> DirectoryConnection | None:
        """Open a connection to the first server that answers; take those that fail off the list."""
        to_greet, greetings = list(left), dict[Future[DirectoryConnection], str]()
        while to_greet or greetings:
            if to_greet:
                url = to_greet.pop(0)
                greetings[self._threads.submit(DirectoryConnection, url, self._access)] = url
            patience = self._access.next_server_seconds if to_greet else float("inf")
            seconds = min(patience, deadline - time.monotonic())
            done, _ = wait(greetings, max(seconds, 0), return_when=FIRST_COMPLETED)
            for future in done:
                url = greetings.pop(future)
                if (error := future.exception()) is None:
                    _leave(greetings)
                    return future.result()
                left.remove(url)
                self._fail(url, error, failures)
            if not done:
                self._fail_all(greetings.values(), failures)
            if time.monotonic() >= deadline:
                break
        _leave(greetings)
        return None

    def _fail_all(self, urls: Iterable[str], failures: dict[str, str]) -> None:
        for url in urls:
            if url not in failures:
                self._fail(url, TimeoutError("no answer in time"), failures)

    def _fail(self, url: str, error: BaseException, failures: dict[str, str]) -> None:
        self._failed_at[url] = time.monotonic()
        failures[url] = f"{type(error).__name__}: {error}"
        self._log.warning("Directory server %s: %s", url, failures[url])


def _leave(greetings: Iterable[Future[DirectoryConnection]]) -> None:
    """Wait no more for servers that another one was quicker than."""
    for greeting in greetings:
        greeting.add_done_callback(_close)


def _close(greeting: Future[DirectoryConnection]) -> None:
    if not greeting.cancelled() and greeting.exception() is None:
        greeting.result().close()
