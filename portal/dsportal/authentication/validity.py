"""Validity of an account, whatever its password: disabled, expired, locked.

Directories keep it in attributes of the entry, and some let a closed account bind all the same. A
lock after too many wrong passwords is none of these: it ends by itself, and somebody else can
cause it. So it counts where the directory enforces it, at the bind, and ends nobody's session.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from dsportal.authentication.entry import Entry

# [MS-ADTS] 2.2.16: userAccountControl's ADS_UF_ACCOUNT_DISABLE.
_DISABLED = 0x2
# [MS-ADA1] 2.1: accountExpires in units of 100 ns since 1601; these two mean never.
_NEVER = frozenset({0, 0x7FFFFFFFFFFFFFFF})
_FILETIME_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# draft-behera-ldap-password-policy, 5.3.3: locked until an administrator unlocks it.
_LOCKED_FOR_GOOD = "000001010000Z"


def why_closed(entry: Entry, now: datetime) -> str | None:
    """Say why an account must not be used, as attribute and value; None where it may."""
    for attribute, is_closed in _RULES.items():
        for value in entry.texts(attribute):
            try:
                closed = is_closed(value, now)
            except (ValueError, OverflowError):
                return f"{attribute} = {value!r} cannot be read"
            if closed:
                return f"{attribute} = {value}"
    return None


def must_change_password(entry: Entry) -> bool:
    """Whether the directory wants a new password before anything else."""
    return any(value.upper() == "TRUE" for value in entry.texts("pwdReset")) or any(
        value == "0" for value in entry.texts("shadowLastChange")
    )


def _is_disabled(value: str, now: datetime) -> bool:
    return bool(int(value) & _DISABLED)


def _has_expired(value: str, now: datetime) -> bool:
    ticks = int(value)
    return ticks not in _NEVER and _FILETIME_EPOCH + timedelta(microseconds=ticks // 10) <= now


def _is_past_shadow_day(value: str, now: datetime) -> bool:
    # shadow(5): days since 1970; empty or -1 is never, and 0 should not be used.
    days = int(value)
    return days > 0 and _UNIX_EPOCH + timedelta(days=days) <= now


def _is_locked_for_good(value: str, now: datetime) -> bool:
    return value == _LOCKED_FOR_GOOD


def _is_true(value: str, now: datetime) -> bool:
    return value.lower() == "true"


def _is_past(value: str, now: datetime) -> bool:
    return datetime.strptime(value, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC) <= now


_RULES: dict[str, Callable[[str, datetime], bool]] = {
    "userAccountControl": _is_disabled,  # Active Directory
    "accountExpires": _has_expired,
    "shadowExpire": _is_past_shadow_day,  # RFC 2307
    "pwdAccountLockedTime": _is_locked_for_good,  # OpenLDAP's ppolicy
    "nsAccountLock": _is_true,  # 389 Directory Server, FreeIPA
    "krbPrincipalExpiration": _is_past,  # FreeIPA
}

ATTRIBUTES = (*_RULES, "pwdReset", "shadowLastChange")
"""What has to be read of an entry for this."""
