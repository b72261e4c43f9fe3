"""What a directory's answer to a bind means."""

from typing import Any

import pytest

from dsportal.authentication.bind_answer import PASSWORD_POLICY, is_right
from dsportal.authentication.errors import DirectoryError, Refused
from dsportal.authentication.words import CLOSED, LOCKED, MUST_CHANGE

WINDOWS = "80090308: LdapErr: DSID-0C0903A9, comment: AcceptSecurityContext error, data {}, v1db1"


def answer(code: int, message: str = "", control: bytes | None = None) -> dict[str, Any]:
    controls = {} if control is None else {PASSWORD_POLICY: {"value": control}}
    return {
        "result": code,
        "description": "x",
        "message": message,
        "referrals": None,
        "controls": controls,
    }


@pytest.mark.parametrize(
    ("given", "right"),
    [
        (answer(0), True),
        (answer(49), False),
        (answer(19), False),
        (answer(32), False),
        (answer(49, WINDOWS.format("52e")), False),
        (answer(0, control=b"\x30\x00"), True),
        # 5 more logins with a password that has expired; its end in 60 s.
        (answer(0, control=b"\x30\x05\xa0\x03\x81\x01\x05"), True),
        (answer(0, control=b"\x30\x05\xa0\x03\x80\x01\x3c"), True),
        (answer(0, control=b""), True),
        (answer(0, control=b"\x30\x02\x81\x01"), True),
    ],
)
def test_a_password_is_right_or_wrong(given: dict[str, Any], right: bool) -> None:
    assert is_right("cn=x", given) is right


@pytest.mark.parametrize(
    ("given", "reason", "told"),
    [
        (
            answer(49, WINDOWS.format("532")),
            "expired",
            MUST_CHANGE,
        ),
        (answer(49, WINDOWS.format("533")), "disabled", CLOSED),
        (answer(49, WINDOWS.format("701")), "expired", CLOSED),
        (
            answer(49, WINDOWS.format("773")),
            "must be changed",
            MUST_CHANGE,
        ),
        (answer(49, WINDOWS.format("775")), "locked", LOCKED),
        (
            answer(49, control=b"\x30\x03\x81\x01\x00"),
            "expired",
            MUST_CHANGE,
        ),
        (answer(49, control=b"\x30\x03\x81\x01\x01"), "locked", LOCKED),
        (
            answer(0, control=b"\x30\x03\x81\x01\x02"),
            "must be changed",
            MUST_CHANGE,
        ),
        (
            answer(0, control=b"\x30\x08\xa0\x03\x81\x01\x05\x81\x01\x02"),
            "must be changed",
            MUST_CHANGE,
        ),
    ],
)
def test_a_password_of_no_use_is_refused(given: dict[str, Any], reason: str, told: str) -> None:
    with pytest.raises(Refused, match=reason) as caught:
        is_right("cn=x", given)
    assert caught.value.words == told


def test_a_referral_is_refused() -> None:
    referral = answer(10) | {"referrals": ["ldap://other.example.org/"]}
    with pytest.raises(Refused, match="refers cn=x to ldap://other"):
        is_right("cn=x", referral)


@pytest.mark.parametrize("code", [1, 2, 8, 13, 51, 52, 80])
def test_what_is_no_answer_is_a_failure(code: int) -> None:
    with pytest.raises(DirectoryError, match="bind as cn=x"):
        is_right("cn=x", answer(code))
