"""Encryption: what is checked of a server, and that nothing goes on without it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.authentication import slapd
from tests.integration.authentication.certificates import make_certificates
from tests.integration.authentication.conftest import MakeAuthenticator
from tests.integration.authentication.logins import log_in, refusal
from tests.integration.authentication.slapd import Slapd
from tests.network.sockets import free_port
from tests.waiting import until

WAYS = ("starttls", "ldaps")


def url(directory: Slapd, way: str) -> str:
    return directory.tls_url if way == "ldaps" else directory.url


def test_starttls_with_the_right_authority_logs_in(
    authenticator: MakeAuthenticator, directory: Slapd
) -> None:
    used = authenticator(tls_strategy="before_bind", ca_file=directory.ca_file)
    assert log_in(used, "user1") is not None


def test_ldaps_with_the_right_authority_logs_in(
    authenticator: MakeAuthenticator, directory: Slapd
) -> None:
    used = authenticator(directory.tls_url, ca_file=directory.ca_file)
    assert log_in(used, "user1") is not None


@pytest.mark.parametrize("way", ["starttls", "ldaps", "unknown authority"])
def test_a_certificate_of_another_authority_is_refused(
    authenticator: MakeAuthenticator,
    directory: Slapd,
    tmp_path: Path,
    way: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    other = tmp_path / "other"
    make_certificates(other)
    used = authenticator(
        directory.tls_url if way == "ldaps" else directory.url,
        tls_strategy="before_bind",
        ca_file="" if way == "unknown authority" else str(other / "ca.pem"),
    )
    assert refusal(used, "user1").status_code == 503
    assert "certificate verify failed" in caplog.text


def test_a_certificate_for_another_name_is_refused(
    authenticator: MakeAuthenticator, directory: Slapd, caplog: pytest.LogCaptureFixture
) -> None:
    url = directory.url.replace("127.0.0.1", "127.1")
    used = authenticator(url, tls_strategy="before_bind", ca_file=directory.ca_file)
    assert refusal(used, "user1").status_code == 503
    assert "Hostname mismatch" in caplog.text


def test_a_directory_that_demands_encryption_is_a_failure_not_a_refusal(
    authenticator: MakeAuthenticator, strict_directory: Slapd, caplog: pytest.LogCaptureFixture
) -> None:
    assert refusal(authenticator(strict_directory.url), "user1").status_code == 503
    assert "confidentialityRequired" in caplog.text
    used = authenticator(
        strict_directory.url, tls_strategy="before_bind", ca_file=strict_directory.ca_file
    )
    assert log_in(used, "user1") is not None


@pytest.fixture(scope="module")
def expired_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    """A directory whose certificate ended yesterday."""
    with slapd.running(tmp_path_factory.mktemp("expired"), certificate_days=-1) as running:
        yield running


@pytest.fixture(scope="module")
def plain_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    """A directory that knows no TLS."""
    with slapd.running(tmp_path_factory.mktemp("plain"), certificate_days=None) as running:
        yield running


@pytest.mark.parametrize("way", WAYS)
def test_an_expired_certificate_is_refused(
    authenticator: MakeAuthenticator,
    expired_directory: Slapd,
    way: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    used = authenticator(
        url(expired_directory, way), tls_strategy="before_bind", ca_file=expired_directory.ca_file
    )
    assert refusal(used, "user1").status_code == 503
    assert "certificate has expired" in caplog.text


def test_nothing_goes_on_unencrypted_where_starttls_fails(
    authenticator: MakeAuthenticator, plain_directory: Slapd, caplog: pytest.LogCaptureFixture
) -> None:
    assert log_in(authenticator(plain_directory.url), "user1") is not None
    used = authenticator(plain_directory.url, tls_strategy="before_bind")
    assert refusal(used, "user1").status_code == 503
    assert "startTLS failed" in caplog.text


@pytest.fixture
def old_server(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A server that speaks TLS 1.2 and nothing newer; its authority."""
    certificates = tmp_path / "certificates"
    make_certificates(certificates)
    port = free_port()
    argv = ["/usr/bin/openssl", "s_server", "-quiet", "-tls1_2", "-accept", f"127.0.0.1:{port}"]
    argv += ["-cert", str(certificates / "server.pem"), "-key", str(certificates / "server.key")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        until(lambda: slapd.accepts(port), seconds=30, what="openssl listens")
        yield f"ldaps://127.0.0.1:{port}", str(certificates / "ca.pem")
        process.terminate()


@pytest.mark.parametrize(
    ("minimum", "cause"), [("1.2", "no answer"), ("1.3", "alert protocol version")]
)
def test_a_server_with_an_older_tls_is_refused(
    authenticator: MakeAuthenticator,
    old_server: tuple[str, str],
    minimum: str,
    cause: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, authority = old_server
    used = authenticator(server, ca_file=authority, minimum_tls=minimum, login_timeout=1.0)
    assert refusal(used, "user1").status_code == 503
    assert cause in caplog.text


@pytest.mark.parametrize(
    ("server", "traits", "warned"),
    [
        ("ldap://ldap.example.org", {}, True),
        ("ldap://192.0.2.1:389", {}, True),
        ("ldap://ldap.example.org", {"accept_unencrypted": True}, False),
        ("ldap://ldap.example.org", {"tls_strategy": "before_bind"}, False),
        ("ldaps://ldap.example.org", {}, False),
        ("ldap://localhost", {}, False),
        ("ldap://127.0.0.1:1389", {}, False),
        ("ldap://[::1]", {}, False),
    ],
)
def test_passwords_that_would_go_unencrypted_are_warned_of_at_the_start(
    authenticator: MakeAuthenticator,
    server: str,
    traits: dict[str, object],
    warned: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    authenticator(server, **traits)
    assert (f"PASSWORDS GO UNENCRYPTED to {server}" in caplog.text) is warned
