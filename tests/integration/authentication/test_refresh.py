"""What becomes of those who are logged in when the directory changes its mind."""

import asyncio
import base64
import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dsportal.authentication.ldap import DirectoryAuthenticator
from tests.integration.authentication.conftest import MakeAuthenticator
from tests.integration.authentication.logins import log_in, reader
from tests.integration.authentication.slapd import (
    GROUP_BASE,
    USER_BASE,
    Slapd,
    person,
)


def refreshed(authenticator: DirectoryAuthenticator, name: str) -> bool | dict[str, Any]:
    return asyncio.run(authenticator.refresh_user(SimpleNamespace(name=name)))


@contextlib.contextmanager
def changed(directory: Slapd, dn: str, change: str) -> Iterator[None]:
    """Change an entry, and take the change back."""
    directory.change(f"dn: {dn}\nchangetype: modify\nadd: {change}\n")
    yield
    attribute = change.split("\n")[0]
    value = change.split("\n")[1]
    directory.change(f"dn: {dn}\nchangetype: modify\ndelete: {attribute}\n{value}\n")


def test_who_is_as_before_stays_with_the_groups_of_now(
    authenticator: MakeAuthenticator, directory: Slapd
) -> None:
    used = authenticator(**reader())
    before = refreshed(used, "user1")
    with changed(directory, f"cn=portal-admins,{GROUP_BASE}", "memberUid\nmemberUid: user1"):
        during = refreshed(used, "user1")
    assert isinstance(before, dict)
    assert isinstance(during, dict)
    assert (before["admin"], during["admin"]) == (False, True)
    assert before["groups"] == ["data-scientists", "vision"]
    assert during["groups"] == ["data-scientists", "portal-admins", "vision"]


def test_who_is_disabled_has_to_log_in_again(
    authenticator: MakeAuthenticator, directory: Slapd, caplog: pytest.LogCaptureFixture
) -> None:
    used = authenticator(**reader())
    change = "objectClass\nobjectClass: closable\n-\nadd: nsAccountLock\nnsAccountLock: true"
    dn = f"uid=user1,{USER_BASE}"
    directory.change(f"dn: {dn}\nchangetype: modify\nadd: {change}\n")
    found = refreshed(used, "user1")
    undo = "nsAccountLock\n-\ndelete: objectClass\nobjectClass: closable"
    directory.change(f"dn: {dn}\nchangetype: modify\ndelete: {undo}\n")
    assert found is False
    assert (
        "user1 is not let in any more: the account is closed: nsAccountLock = true" in caplog.text
    )


def test_who_is_gone_has_to_log_in_again(
    authenticator: MakeAuthenticator, directory: Slapd
) -> None:
    directory.change(person("leaver"), "ldapadd")
    used = authenticator(**reader())
    before = refreshed(used, "leaver")
    directory.change(f"dn: uid=leaver,{USER_BASE}\nchangetype: delete\n")
    assert isinstance(before, dict)
    assert refreshed(used, "leaver") is False


def test_who_left_the_groups_has_to_log_in_again(authenticator: MakeAuthenticator) -> None:
    used = authenticator(allowed_groups={"vision"}, **reader())
    assert refreshed(used, "user3") is False


# slapd takes them for other names; it holds a tab or a no-break space for a space.
@pytest.mark.parametrize("space", ["\x0b", "\x1f", "\x85", "\u2028"], ids=ascii)
def test_a_group_that_only_looks_like_the_admins_makes_nobody_an_admin(
    authenticator: MakeAuthenticator, directory: Slapd, space: str
) -> None:
    name = f"{space}portal-admins"
    dn = base64.b64encode(f"cn={name},{GROUP_BASE}".encode()).decode()
    cn = base64.b64encode(name.encode()).decode()
    member = f"member: uid=user1,{USER_BASE}"
    directory.change(f"dn:: {dn}\nobjectClass: groupOfNames\ncn:: {cn}\n{member}\n", "ldapadd")
    found = refreshed(authenticator(**reader()), "user1")
    directory.change(f"dn:: {dn}\nchangetype: delete\n")
    assert isinstance(found, dict)
    assert name in found["groups"]
    assert found["admin"] is False


def test_more_groups_than_the_directory_lists_are_nobody_elses_affair(
    authenticator: MakeAuthenticator, directory: Slapd
) -> None:
    """Slapd lists 500 entries, unless its sizelimit is another."""
    dns = [f"cn=many{number},{GROUP_BASE}" for number in range(501)]
    group = "objectClass: groupOfNames\nmember: uid=user1,"
    directory.change("\n".join(f"dn: {dn}\n{group}{USER_BASE}\n" for dn in dns), "ldapadd")
    used = authenticator(**reader(), refresh_pause=60)
    found = [refreshed(used, name) for name in ("user1", "user3")]
    directory.change("\n".join(f"dn: {dn}\nchangetype: delete\n" for dn in dns))
    assert found[0] is True
    assert isinstance(found[1], dict)


def test_a_lock_by_somebody_elses_tries_ends_no_login(
    authenticator: MakeAuthenticator, directory: Slapd
) -> None:
    directory.change(f"{person('target')}pwdAccountLockedTime: 20200101000000Z\n", "ldapadd")
    found = refreshed(authenticator(**reader()), "target")
    directory.change(f"dn: uid=target,{USER_BASE}\nchangetype: delete\n")
    assert isinstance(found, dict)


def test_a_directory_that_does_not_answer_changes_nothing_and_is_left_alone(
    authenticator: MakeAuthenticator,
    silent_directory: Slapd,
    no_directory: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for server in (silent_directory.url, no_directory):
        used = authenticator(server, refresh_timeout=0.5, **reader())
        caplog.clear()
        assert refreshed(used, "user1") is True
        assert refreshed(used, "user1") is True
        assert caplog.text.count("The account of user1 stays as it is") == 1


def test_without_a_reader_nothing_is_asked(
    authenticator: MakeAuthenticator, no_directory: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert refreshed(authenticator(no_directory), "user1") is True
    assert caplog.text == ""


def test_a_reader_who_is_refused_changes_nothing(authenticator: MakeAuthenticator) -> None:
    used = authenticator(**{**reader(), "lookup_dn_search_password": "wrong"})
    assert refreshed(used, "user1") is True


def test_each_start_looks_at_the_account(authenticator: MakeAuthenticator) -> None:
    used = authenticator(**reader())
    assert used.refresh_pre_spawn is True
    # Without it JupyterHub lets requests with a token go on.
    assert used.auth_refresh_strict is True
    assert log_in(used, "user1") is not None
