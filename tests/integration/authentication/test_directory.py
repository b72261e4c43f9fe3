"""Logins against a real directory."""

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

import pytest
from tornado import web

from portal.authentication.ldap import DirectoryAuthenticator
from tests.integration.authentication import slapd
from tests.integration.authentication.conftest import MakeAuthenticator
from tests.integration.authentication.slapd import GROUP_BASE, PASSWORD, READER_DN, Slapd


async def log_in_async(
    authenticator: DirectoryAuthenticator, name: str, password: str = PASSWORD
) -> dict[str, Any] | None:
    data = {"username": name, "password": password}
    found: dict[str, Any] | None = await authenticator.get_authenticated_user(None, data)
    return found


def log_in(
    authenticator: DirectoryAuthenticator, name: str, password: str = PASSWORD
) -> dict[str, Any] | None:
    return asyncio.run(log_in_async(authenticator, name, password))


def refusal(authenticator: DirectoryAuthenticator, name: str) -> web.HTTPError:
    with pytest.raises(web.HTTPError) as caught:
        log_in(authenticator, name)
    return caught.value


def test_the_right_password_gives_the_user_with_all_groups(
    authenticator: MakeAuthenticator,
) -> None:
    user = log_in(authenticator(), "user1")
    assert user is not None
    assert user["name"] == "user1"
    assert user["groups"] == ["data-scientists", "vision"]
    assert user["admin"] is False


def test_the_primary_group_is_one_of_the_groups(authenticator: MakeAuthenticator) -> None:
    user = log_in(authenticator(), "user3")
    assert user is not None
    assert user["groups"] == ["unix-primary"]


def test_a_member_of_an_admin_group_is_an_admin(authenticator: MakeAuthenticator) -> None:
    user = log_in(authenticator(), "admin1")
    assert user is not None
    assert user["admin"] is True


def test_who_left_the_admin_group_is_no_admin_at_the_next_login(
    authenticator: MakeAuthenticator, directory: Slapd
) -> None:
    change = f"dn: cn=portal-admins,{GROUP_BASE}\nchangetype: modify\n{{}}: memberUid\n"
    directory.change(change.format("add") + "memberUid: user1\n")
    before = log_in(authenticator(), "user1")
    directory.change(change.format("delete") + "memberUid: user1\n")
    after = log_in(authenticator(), "user1")
    assert before is not None
    assert after is not None
    assert (before["admin"], after["admin"]) == (True, False)


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("user1", "wrong"),
        ("user1", ""),
        ("user1", " "),
        ("user1", "\u00ad"),  # a soft hyphen
        ("user1", "\x00"),
        ("nobody-here", PASSWORD),
        ("", ""),
        ("", PASSWORD),
        ("*", PASSWORD),
        ("user1)(uid=*", PASSWORD),
        ("user1,ou=people", PASSWORD),
        ("user1\n", PASSWORD),
        ("user1 ", PASSWORD),
        ("user1\x00", PASSWORD),
        ("\u212auser1", PASSWORD),  # the Kelvin sign
        ("\uff55ser1", PASSWORD),  # a fullwidth u
        ("../user1", PASSWORD),
        ("a" * 4000, PASSWORD),
    ],
)
@pytest.mark.parametrize("with_reader", [False, True])
def test_wrong_names_and_passwords_are_refused_alike(
    authenticator: MakeAuthenticator, name: str, password: str, with_reader: bool
) -> None:
    assert log_in(authenticator(**reader(with_reader)), name, password) is None


def reader(wanted: bool) -> dict[str, str]:
    account = {"lookup_dn_search_user": READER_DN, "lookup_dn_search_password": PASSWORD}
    return account if wanted else {}


def test_capitals_typed_make_no_second_user(authenticator: MakeAuthenticator) -> None:
    user = log_in(authenticator(), "USER1")
    assert user is not None
    assert user["name"] == "user1"
    assert "data-scientists" in user["groups"]


@pytest.mark.parametrize("typed", ["User2", "user2"])
def test_a_name_that_is_not_the_directorys_own_is_refused(
    authenticator: MakeAuthenticator, typed: str
) -> None:
    assert log_in(authenticator(), typed) is None


@pytest.mark.parametrize("with_reader", [False, True])
def test_of_several_names_only_the_entrys_own_logs_in(
    authenticator: MakeAuthenticator, with_reader: bool
) -> None:
    used = authenticator(**reader(with_reader))
    assert log_in(used, "user4") is not None
    assert log_in(used, "other-name") is None


def test_a_reader_finds_users_in_branches_below(
    authenticator: MakeAuthenticator, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n")
    used = authenticator(
        lookup_dn_search_user=READER_DN, lookup_dn_search_password_file=str(secret)
    )
    user = log_in(used, "guest1")
    assert user is not None
    assert user["groups"] == ["vision"]


def test_memberof_alone_names_a_group(authenticator: MakeAuthenticator) -> None:
    user = log_in(authenticator(group_search_filter="(cn=none)"), "user1")
    assert user is not None
    assert user["groups"] == ["vision"]


def test_who_is_in_no_allowed_group_is_told_whom_to_ask(
    authenticator: MakeAuthenticator,
) -> None:
    error = refusal(authenticator(contact="Ada, room 12"), "stranger")
    assert error.status_code == 403
    assert error.log_message == (
        "Your account is not allowed to use the portal; ask Ada, room 12 for access."
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
    assert error.log_message == "The directory does not answer; try again in a minute."
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


def test_more_logins_than_threads_wait_their_turn_and_pass(
    authenticator: MakeAuthenticator,
) -> None:
    used = authenticator(executor_threads=2)

    async def crowd() -> list[dict[str, Any] | None]:
        return await asyncio.gather(*(log_in_async(used, "user1") for _ in range(12)))

    assert all(asyncio.run(crowd()))


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
    slapd.make_certificates(other)
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


def test_a_reader_with_a_wrong_password_is_a_failure_not_a_refusal(
    authenticator: MakeAuthenticator,
) -> None:
    used = authenticator(lookup_dn_search_user=READER_DN, lookup_dn_search_password="wrong")
    assert refusal(used, "user1").status_code == 503


def test_a_directory_that_demands_encryption_is_a_failure_not_a_refusal(
    authenticator: MakeAuthenticator, strict_directory: Slapd, caplog: pytest.LogCaptureFixture
) -> None:
    assert refusal(authenticator(strict_directory.url), "user1").status_code == 503
    assert "confidentialityRequired" in caplog.text
    used = authenticator(
        strict_directory.url, tls_strategy="before_bind", ca_file=strict_directory.ca_file
    )
    assert log_in(used, "user1") is not None


def test_a_groups_branch_that_is_not_there_is_a_failure_not_a_refusal(
    authenticator: MakeAuthenticator, caplog: pytest.LogCaptureFixture
) -> None:
    used = authenticator(group_search_base="ou=nowhere,dc=portal,dc=example")
    assert refusal(used, "user1").status_code == 503
    assert "ou=nowhere" in caplog.text


def test_no_password_reaches_the_log(
    authenticator: MakeAuthenticator, no_directory: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "correct-horse-battery"
    for used in (authenticator(), authenticator(no_directory)):
        with (
            caplog.at_level(logging.DEBUG, used.log.name),
            pytest.raises((web.HTTPError, AssertionError)),
        ):
            assert log_in(used, "user1", secret) is not None
    assert caplog.messages
    assert secret not in caplog.text
