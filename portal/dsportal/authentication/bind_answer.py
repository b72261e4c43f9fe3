"""Answers of a directory to an LDAP bind: right, wrong, or right but not to be used.

The password policy control is draft-behera-ldap-password-policy's; Active Directory writes a system
error code ([MS-ERREF]) into its message instead.
"""

import re
from collections.abc import Mapping
from typing import Any

from dsportal.authentication.errors import DirectoryError, Locked, Refused
from dsportal.authentication.words import CLOSED, MUST_CHANGE

PASSWORD_POLICY = "1.3.6.1.4.1.42.2.27.8.5.1"  # noqa: S105  # a control's number

_REFERRAL = 10
# RFC 4511, appendix A: what a directory answers to a bind with a wrong name or password. Besides
# 49 invalidCredentials: 19 constraintViolation (locked after too many tries), 32 noSuchObject,
# 34 invalidDNSyntax, 48 inappropriateAuthentication (no password set), 50 insufficientAccessRights,
# 53 unwillingToPerform.
_NO = frozenset({19, 32, 34, 48, 49, 50, 53})

# Told only to who has the right password, but for the lock.
_WINDOWS = {
    "530": Refused("not at this time of day (530)", CLOSED),
    "531": Refused("not from this computer (531)", CLOSED),
    "532": Refused("the password has expired (532)", MUST_CHANGE),
    "533": Refused("the account is disabled (533)", CLOSED),
    "701": Refused("the account has expired (701)", CLOSED),
    "773": Refused("the password must be changed (773)", MUST_CHANGE),
    "775": Locked("the account is locked (775)"),
}
_POLICY = {
    0: Refused("the password has expired", MUST_CHANGE),
    1: Locked(),
    2: Refused("the password must be changed", MUST_CHANGE),
}


def is_right(dn: str, result: Mapping[str, Any]) -> bool:
    """Whether the password was right; raises Refused where it is, and is of no use.

    Raises DirectoryError for what is no answer to the question.
    """
    code, message = result["result"], result["message"]
    if code == _REFERRAL:
        raise Refused(f"the directory refers {dn} to {', '.join(result['referrals'] or ())}")
    if code != 0 and code not in _NO:
        raise DirectoryError(f"bind as {dn}: {result['description']} {message}".strip())
    if (refusal := _of_policy(result) or _of_windows(message)) is not None:
        raise type(refusal)(refusal.reason, refusal.words)
    return bool(code == 0)


def _of_windows(message: str) -> Refused | None:
    found = re.search(r"AcceptSecurityContext error, data ([0-9a-f]+),", message)
    return _WINDOWS.get(found[1]) if found else None


def _of_policy(result: Mapping[str, Any]) -> Refused | None:
    control = (result.get("controls") or {}).get(PASSWORD_POLICY)
    return _POLICY.get(_policy_error(control["value"] or b"")) if control else None


def _policy_error(value: bytes) -> int:
    """Give the error in a control's value, -1 for none.

    In BER: a sequence of an optional warning (tag A0) and an optional error (tag 81, one byte); all
    of it is short, so each length is one byte.
    """
    inside = value[2:]
    if inside[:1] == b"\xa0":
        inside = inside[2 + inside[1] :]
    return inside[2] if inside[:2] == b"\x81\x01" and len(inside) > 2 else -1
