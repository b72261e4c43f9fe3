"""Logins against a real directory."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from tornado import web

from dsportal.authentication.words import NOT_ALLOWED
from tests.integration.authentication.conftest import MakeAuthenticator
from tests.integration.authentication.logins import log_in, reader, refusal
from tests.integration.authentication.slapd import GROUP_BASE, PASSWORD, READER_DN, Slapd


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


def test_capitals_typed_make_no_second_user(authenticator: MakeAuthenticator) -> None:
    user = log_in(authenticator(), "USER1")
    assert user is not None
    assert user["name"] == "user1"
    assert "data-scientists" in user["groups"]


@pytest.mark.parametrize("typed", ["User2", "user2", "USER2"])
def test_capitals_in_the_directory_make_no_second_user(
    authenticator: MakeAuthenticator, typed: str
) -> None:
    user = log_in(authenticator(), typed)
    assert user is not None
    assert user["name"] == "user2"
    # As the directory spells the member: names of members are compared exactly.
    assert user["groups"] == ["data-scientists"]


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
    assert error.log_message == NOT_ALLOWED.format(contact="Ada, room 12")


def test_more_logins_than_threads_wait_their_turn_and_pass(
    authenticator: MakeAuthenticator,
) -> None:
    used = authenticator(executor_threads=2)

    async def crowd() -> list[dict[str, Any] | None]:
        # Not through the door, which holds up so many at once.
        data = {"username": "user1", "password": PASSWORD}
        return await asyncio.gather(*(used.authenticate(None, data) for _ in range(12)))

    assert all(asyncio.run(crowd()))


def test_a_reader_with_a_wrong_password_is_a_failure_not_a_refusal(
    authenticator: MakeAuthenticator,
) -> None:
    used = authenticator(lookup_dn_search_user=READER_DN, lookup_dn_search_password="wrong")
    assert refusal(used, "user1").status_code == 503


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
