"""Servers that refuse, are silent or fail: which one is asked, and what it gets to know."""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from tornado import web

from dsportal.authentication.connection import DirectoryConnection, LdapAccess
from dsportal.authentication.errors import DirectoryError
from dsportal.authentication.servers import Servers
from dsportal.authentication.words import DIRECTORY_SILENT
from tests.integration.authentication import slapd
from tests.integration.authentication.conftest import MakeAuthenticator
from tests.integration.authentication.logins import log_in, log_in_async, refusal
from tests.integration.authentication.slapd import PASSWORD, Slapd


@pytest.fixture(scope="module")
def second_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    """A server that holds the same."""
    with slapd.running(tmp_path_factory.mktemp("second")) as running:
        yield running


@pytest.fixture
def listener() -> Iterator[tuple[str, list[bytes]]]:
    """A server that takes everything and answers nothing; what it was told."""
    told: list[bytes] = []
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    while part := connection.recv(65536):
                        told.append(part)

        thread = threading.Thread(target=listen)
        thread.start()
        yield f"ldap://127.0.0.1:{server.getsockname()[1]}", told
        server.shutdown(socket.SHUT_RDWR)
        thread.join(30)


def access(*servers: str) -> LdapAccess:
    return LdapAccess(
        servers=servers,
        start_tls=False,
        ca_file="",
        connect_seconds=5,
        receive_seconds=5,
        next_server_seconds=0.3,
    )


def test_a_server_that_refuses_is_followed_by_the_next(
    authenticator: MakeAuthenticator, directory: Slapd, no_directory: str
) -> None:
    assert log_in(authenticator(no_directory, directory.url), "user1") is not None


def test_a_silent_server_is_followed_by_the_next_and_then_asked_last(
    authenticator: MakeAuthenticator,
    directory: Slapd,
    silent_directory: Slapd,
    caplog: pytest.LogCaptureFixture,
) -> None:
    used = authenticator(silent_directory.url, directory.url)
    assert log_in(used, "user1") is not None
    assert log_in(used, "user1") is not None
    failures = [line for line in caplog.messages if silent_directory.url in line]
    assert len(failures) == 1


def test_a_directory_that_does_not_answer_is_not_a_wrong_password(
    authenticator: MakeAuthenticator, no_directory: str, caplog: pytest.LogCaptureFixture
) -> None:
    used = authenticator(no_directory)
    error = refusal(used, "user1")
    assert error.log_message == DIRECTORY_SILENT
    assert error.status_code == 503
    assert no_directory in caplog.text
    assert "refused" in caplog.text


def test_a_silent_directory_holds_up_its_own_login_only(
    authenticator: MakeAuthenticator, silent_directory: Slapd
) -> None:
    async def both() -> tuple[bool, int, float, BaseException | None]:
        start = time.monotonic()
        stuck = asyncio.create_task(
            log_in_async(authenticator(silent_directory.url, login_timeout=1.5), "user1")
        )
        good = asyncio.create_task(log_in_async(authenticator(), "admin1"))
        passed_meanwhile = await good is not None and not stuck.done()
        turns = 0
        while not stuck.done():
            await asyncio.sleep(0.01)
            turns += 1
        return passed_meanwhile, turns, time.monotonic() - start, stuck.exception()

    passed_meanwhile, turns, seconds, error = asyncio.run(both())
    assert passed_meanwhile
    assert turns > 50
    assert 1.5 <= seconds < 4
    assert isinstance(error, web.HTTPError)
    assert error.status_code == 503


@pytest.mark.parametrize("start_tls", [False, True])
def test_a_host_that_accepts_nothing_takes_the_time_to_connect_and_no_more(
    authenticator: MakeAuthenticator, silent_host: str, start_tls: bool
) -> None:
    strategy = "before_bind" if start_tls else "insecure"
    start = time.monotonic()
    error = refusal(authenticator(silent_host, tls_strategy=strategy), "user1")
    assert error.status_code == 503
    assert time.monotonic() - start < 4


def test_a_silent_tls_server_is_given_up(
    authenticator: MakeAuthenticator, silent_directory: Slapd
) -> None:
    start = time.monotonic()
    error = refusal(authenticator(silent_directory.tls_url), "user1")
    assert error.status_code == 503
    assert time.monotonic() - start < 5


def test_a_silent_host_is_followed_by_the_next(
    authenticator: MakeAuthenticator, directory: Slapd, silent_host: str
) -> None:
    # Its time to connect is longer than the login may take.
    used = authenticator(silent_host, directory.url, connect_timeout=60, login_timeout=10.0)
    assert log_in(used, "user1") is not None


def test_a_silent_server_never_hears_the_password(
    authenticator: MakeAuthenticator, directory: Slapd, listener: tuple[str, list[bytes]]
) -> None:
    url, told = listener
    assert log_in(authenticator(url, directory.url), "user1") is not None
    assert told
    assert PASSWORD.encode() not in b"".join(told)


def test_a_server_that_fails_later_is_followed_by_the_next(
    directory: Slapd, second_directory: Slapd
) -> None:
    asked: list[str] = []

    def question(connection: DirectoryConnection) -> str:
        asked.append(connection.url)
        if connection.url == directory.url:
            raise OSError("gone")
        return connection.url

    servers = Servers(access(directory.url, second_directory.url), logging.getLogger("test"))
    deadline = time.monotonic() + 30
    assert servers.ask(question, deadline) == second_directory.url
    assert servers.ask(question, deadline) == second_directory.url
    assert asked == [directory.url, second_directory.url, second_directory.url]


def test_while_the_first_server_answers_no_other_is_asked(
    directory: Slapd, listener: tuple[str, list[bytes]]
) -> None:
    url, told = listener
    servers = Servers(access(directory.url, url), logging.getLogger("test"))
    answers = {
        servers.ask(lambda connection: connection.url, time.monotonic() + 30) for _ in range(5)
    }
    assert answers == {directory.url}
    assert told == []


def test_a_server_that_is_back_is_asked_when_the_other_fails(
    directory: Slapd, second_directory: Slapd
) -> None:
    servers = Servers(access(directory.url, second_directory.url), logging.getLogger("test"))

    def answering() -> str:
        return servers.ask(lambda connection: connection.url, time.monotonic() + 30)

    with directory.silent():
        assert answering() == second_directory.url
    with second_directory.silent():
        assert answering() == directory.url


def test_all_servers_that_failed_are_named(
    no_directory: str, listener: tuple[str, list[bytes]]
) -> None:
    servers = Servers(access(no_directory, listener[0]), logging.getLogger("test"))
    with pytest.raises(DirectoryError) as caught:
        servers.ask(lambda connection: connection.url, time.monotonic() + 0.5)
    assert f"{no_directory}: LDAPSocketOpenError" in str(caught.value)
    assert f"{listener[0]}: TimeoutError: no answer in time" in str(caught.value)
