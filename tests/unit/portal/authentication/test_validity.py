"""Whether an account may be used, from its attributes."""

from datetime import UTC, datetime

import pytest

from dsportal.authentication.entry import Entry
from dsportal.authentication.validity import must_change_password, why_closed

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
# Of 2026-11-21 00:00 UTC: 100 ns since 1601, and days since 1970.
TODAY_TICKS = 134396928000000000
TODAY_DAYS = 20778


def entry(**attributes: str) -> Entry:
    return Entry("uid=x", {name.lower(): [value.encode()] for name, value in attributes.items()})


@pytest.mark.parametrize(
    ("attribute", "value", "closed"),
    [
        ("userAccountControl", "512", False),
        ("userAccountControl", "514", True),
        ("userAccountControl", "66048", False),  # the password never expires
        ("userAccountControl", "66050", True),
        ("accountExpires", "0", False),
        ("accountExpires", "9223372036854775807", False),
        ("accountExpires", str(TODAY_TICKS), True),
        ("accountExpires", str(TODAY_TICKS + 10**12), False),
        ("shadowExpire", "", True),  # cannot be read
        ("shadowExpire", "-1", False),
        ("shadowExpire", "0", False),
        ("shadowExpire", str(TODAY_DAYS), True),
        ("shadowExpire", str(TODAY_DAYS + 1), False),
        ("pwdAccountLockedTime", "000001010000Z", True),
        ("pwdAccountLockedTime", "20261121115900Z", False),  # ends by itself
        ("nsAccountLock", "TRUE", True),
        ("nsAccountLock", "true", True),
        ("nsAccountLock", "FALSE", False),
        ("krbPrincipalExpiration", "20261121115959Z", True),
        ("krbPrincipalExpiration", "20261121120001Z", False),
        ("krbPrincipalExpiration", "soon", True),  # cannot be read
        ("accountExpires", "9" * 30, True),  # cannot be read
        ("description", "disabled", False),
    ],
)
def test_an_account_is_closed_when_an_attribute_says_so(
    attribute: str, value: str, closed: bool
) -> None:
    why = why_closed(entry(**{attribute: value}), NOW)
    assert (why is not None) is closed
    assert not closed or attribute in str(why)


@pytest.mark.parametrize(
    ("attribute", "value", "must"),
    [
        ("pwdReset", "TRUE", True),
        ("pwdReset", "FALSE", False),
        ("shadowLastChange", "0", True),
        ("shadowLastChange", "20000", False),
        ("uid", "0", False),
    ],
)
def test_a_password_must_be_changed_when_an_attribute_says_so(
    attribute: str, value: str, must: bool
) -> None:
    assert must_change_password(entry(**{attribute: value})) is must
