"""Accounts that are disabled, expired or locked, and passwords that must be changed."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from dsportal.authentication.attempts import PAIR
from dsportal.authentication.words import CLOSED, LOCKED, MUST_CHANGE
from tests.integration.authentication.conftest import MakeAuthenticator
from tests.integration.authentication.logins import log_in, reader, refusal
from tests.integration.authentication.slapd import BASE, PASSWORD, USER_BASE, Slapd, person
from tests.waiting import until

TODAY = (datetime.now(UTC) - datetime(1970, 1, 1, tzinfo=UTC)).days
DAY_AFTER_TOMORROW = f"{datetime.now(UTC) + timedelta(days=2):%Y%m%d%H%M%SZ}"

# Attributes with which the directory still takes the password.
STILL_BIND = {
    "shadow": (f"objectClass: shadowAccount\nshadowExpire: {TODAY}\n", f"shadowExpire = {TODAY}"),
    "nslock": ("objectClass: closable\nnsAccountLock: TRUE\n", "nsAccountLock = TRUE"),
    "principal": (
        "objectClass: closable\nkrbPrincipalExpiration: 20200101000000Z\n",
        "krbPrincipalExpiration = 20200101000000Z",
    ),
    # Whose entry no policy is in force for.
    "no-policy": (
        "pwdAccountLockedTime: 000001010000Z\n",
        "pwdAccountLockedTime = 000001010000Z",
    ),
}
OPEN = {
    "later": f"objectClass: shadowAccount\nshadowExpire: {TODAY + 2}\n",
    "never": "objectClass: shadowAccount\nshadowExpire: -1\n",
    "unlocked": "objectClass: closable\nnsAccountLock: FALSE\n",
    "future": f"objectClass: closable\nkrbPrincipalExpiration: {DAY_AFTER_TOMORROW}\n",
}
OTHERS = {
    "locked": f"pwdPolicySubentry: cn=strict,{BASE}\npwdAccountLockedTime: 000001010000Z\n",
    "reset": f"pwdPolicySubentry: cn=strict,{BASE}\n",
    "aged": f"pwdPolicySubentry: cn=ageing,{BASE}\n",
    "first": "objectClass: shadowAccount\nshadowLastChange: 0\n",
}


@pytest.fixture(scope="module", autouse=True)
def accounts(directory: Slapd) -> Iterator[None]:
    """One account of each kind, and the policies of two."""
    kinds = {**{name: text for name, (text, _) in STILL_BIND.items()}, **OPEN, **OTHERS}
    directory.change(f"{policy('ageing')}pwdMaxAge: 1\n", "ldapadd")
    directory.change(f"{policy('strict')}pwdMustChange: TRUE\npwdLockout: TRUE\n", "ldapadd")
    directory.change("\n".join(person(name) + text for name, text in kinds.items()), "ldapadd")
    reset = f"dn: uid=reset,{USER_BASE}\nchangetype: modify\nadd: pwdReset\npwdReset: TRUE\n"
    directory.change(reset)
    yield
    gone = [f"uid={name},{USER_BASE}" for name in kinds]
    gone += [f"cn={name},{BASE}" for name in ("ageing", "strict")]
    directory.change("\n".join(f"dn: {dn}\nchangetype: delete\n" for dn in gone))


def policy(name: str) -> str:
    return (
        f"dn: cn={name},{BASE}\nobjectClass: device\nobjectClass: pwdPolicy\ncn: {name}\n"
        "pwdAttribute: userPassword\n"
    )


@pytest.mark.parametrize("with_reader", [False, True])
@pytest.mark.parametrize("name", STILL_BIND)
def test_a_closed_account_is_refused_though_the_directory_takes_its_password(
    authenticator: MakeAuthenticator,
    name: str,
    with_reader: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = refusal(authenticator(contact="Ada", **reader(with_reader)), name)
    assert (error.status_code, error.log_message) == (403, CLOSED.format(contact="Ada"))
    assert f"refused: the account is closed: {STILL_BIND[name][1]}" in caplog.text


@pytest.mark.parametrize("name", [*STILL_BIND, "reset", "aged", "first"])
def test_a_wrong_password_does_not_learn_how_the_account_is(
    authenticator: MakeAuthenticator, name: str
) -> None:
    assert log_in(authenticator(**reader()), name, "wrong") is None


@pytest.mark.parametrize("name", OPEN)
def test_an_account_that_is_open_logs_in(authenticator: MakeAuthenticator, name: str) -> None:
    assert log_in(authenticator(), name) is not None


def test_a_locked_account_is_said_to_be_so(
    authenticator: MakeAuthenticator, caplog: pytest.LogCaptureFixture
) -> None:
    error = refusal(authenticator(contact="Ada"), "locked")
    assert (error.status_code, error.log_message) == (429, LOCKED.format(contact="Ada"))
    assert "Login of 'locked' refused: the account is locked" in caplog.text


def test_to_try_a_locked_account_costs_what_a_wrong_password_does(
    authenticator: MakeAuthenticator,
) -> None:
    used = authenticator()
    for _ in range(PAIR.free):
        assert refusal(used, "locked").log_message == LOCKED.format(contact=used.contact)
    assert "Too many" in str(refusal(used, "locked").log_message)


@pytest.mark.parametrize("with_reader", [False, True])
@pytest.mark.parametrize("name", ["reset", "first"])
def test_a_password_that_must_be_changed_is_said_to_be_so(
    authenticator: MakeAuthenticator, name: str, with_reader: bool
) -> None:
    used = authenticator(**reader(with_reader))
    error = refusal(used, name)
    assert error.status_code == 403
    assert error.log_message == MUST_CHANGE.format(contact=used.contact)


def test_a_password_that_has_expired_is_said_to_be_so(
    authenticator: MakeAuthenticator, directory: Slapd, caplog: pytest.LogCaptureFixture
) -> None:
    used = authenticator(**reader())
    # The policy lets a password live for a second.
    until(lambda: not directory.takes(f"uid=aged,{USER_BASE}", PASSWORD), seconds=10, what="expiry")
    assert refusal(used, "aged").log_message == MUST_CHANGE.format(contact=used.contact)
    assert "refused: the password has expired" in caplog.text
