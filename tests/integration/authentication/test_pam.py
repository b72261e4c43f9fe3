"""Logins against real Unix accounts, as the hub's own user, who is not root."""

import asyncio
import grp
import logging
import multiprocessing
import os
import pwd
import secrets
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from tornado import web

from dsportal.authentication.pam import PamAuthenticator
from dsportal.authentication.words import NOT_ALLOWED
from tests.integration.authentication.logins import browser

PASSWORD = "a password of its own"


@dataclass(frozen=True)
class Account:
    """A Unix user that the tests made."""

    name: str
    group: str


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    """A Unix user with a password, in one group besides their own."""
    name = f"t{secrets.token_hex(6)}"
    made = Account(name, f"{name}-group")
    run("/usr/sbin/groupadd", made.group)
    try:
        run("/usr/sbin/useradd", "--no-create-home", "--groups", made.group, name)
        try:
            run("/usr/sbin/chpasswd", text=f"{name}:{PASSWORD}\n")
            yield made
        finally:
            run("/usr/sbin/userdel", name)
    finally:
        run("/usr/sbin/groupdel", made.group)


def run(*argv: str, text: str = "") -> None:
    subprocess.run(argv, input=text, text=True, check=True, capture_output=True, timeout=30)


def log_in(
    name: str, password: str, *, hub_groups: tuple[str, ...] = ("shadow",), **traits: Any
) -> dict[str, Any] | str | None:
    """Log in as the hub would: in a process of user nobody; give the answer or the refusal."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    child = fork.Process(target=_as_nobody, args=(theirs, name, password, hub_groups, traits))
    child.start()
    try:
        assert ours.poll(30), "no answer"
        answer: dict[str, Any] | str | None = ours.recv()
        return answer
    finally:
        child.join(30)
        child.close()
        ours.close()
        theirs.close()


def _as_nobody(
    answer: Connection,
    name: str,
    password: str,
    hub_groups: tuple[str, ...],
    traits: dict[str, Any],
) -> None:
    logging.disable(logging.CRITICAL)
    nobody = pwd.getpwnam("nobody")
    os.setgroups([grp.getgrnam(group).gr_gid for group in hub_groups])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
    authenticator = PamAuthenticator(**traits)
    data = {"username": name, "password": password}
    try:
        answer.send(asyncio.run(authenticator.get_authenticated_user(browser(), data)))
    except web.HTTPError as error:
        answer.send(error.log_message)


def test_the_right_password_gives_the_user_with_all_groups(account: Account) -> None:
    user = log_in(account.name, PASSWORD, allowed_groups={account.group})
    assert isinstance(user, dict)
    assert user["name"] == account.name
    assert user["groups"] == sorted([account.name, account.group])
    assert user["admin"] is False


def test_capitals_typed_make_no_second_user(account: Account) -> None:
    user = log_in(account.name.upper(), PASSWORD, allowed_groups={account.group})
    assert isinstance(user, dict)
    assert user["name"] == account.name


def test_a_member_of_an_admin_group_is_an_admin(account: Account) -> None:
    user = log_in(account.name, PASSWORD, admin_groups={account.group})
    assert isinstance(user, dict)
    assert user["admin"] is True


def test_who_is_in_no_allowed_group_is_told_whom_to_ask(account: Account) -> None:
    answer = log_in(account.name, PASSWORD, allowed_groups={"portal"}, contact="Ada")
    assert answer == NOT_ALLOWED.format(contact="Ada")


@pytest.mark.parametrize("password", ["wrong", "", "\x00", PASSWORD + "\n"])
def test_a_wrong_password_is_refused(account: Account, password: str) -> None:
    assert log_in(account.name, password, allowed_groups={account.group}) is None


@pytest.mark.parametrize("name", ["nobody-here", "", "root\n", "*", "a" * 4000])
def test_an_unknown_name_is_refused(account: Account, name: str) -> None:
    assert log_in(name, PASSWORD, allowed_groups={account.group}) is None


@pytest.fixture
def service() -> Iterator[Callable[[str], str]]:
    """Make a PAM service that checks passwords, and judges accounts by a module of its own."""
    files: list[Path] = []

    def make(account: str) -> str:
        file = Path("/etc/pam.d", f"t{secrets.token_hex(6)}")
        files.append(file)
        file.write_text(f"auth required pam_unix.so\naccount required {account}\n")
        return file.name

    yield make
    for file in files:
        file.unlink()


def test_besides_the_password_the_account_is_asked_about(
    account: Account, service: Callable[[str], str]
) -> None:
    answers = [
        log_in(account.name, PASSWORD, allowed_groups={account.group}, service=service(module))
        for module in ("pam_permit.so", "pam_deny.so")
    ]
    assert isinstance(answers[0], dict)
    assert answers[1] is None


def test_a_hub_that_cannot_read_the_passwords_lets_nobody_in(account: Account) -> None:
    assert log_in(account.name, PASSWORD, hub_groups=(), allowed_groups={account.group}) is None
