"""What a question to several servers ends with; a stand-in for ldap3's connection."""

import logging
import time
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

# ldap3 2.9.1 uses names that pyasn1 has renamed; nothing of ours can mend that.
with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from dsportal.authentication import servers
    from dsportal.authentication.connection import DirectoryConnection, LdapAccess

from dsportal.authentication.errors import DirectoryError, LimitExceeded

ACCESS = LdapAccess(("ldap://a", "ldap://b"), False, "", 1, 1)


def connection(url: str, code: int) -> Any:
    """An open connection to a server that answers each search with this result code."""
    opened: Any = DirectoryConnection.__new__(DirectoryConnection)
    answer = {"result": code, "description": f"result {code}", "message": "", "referrals": None}
    opened.url, opened.is_active_directory = url, False
    opened._connection = SimpleNamespace(
        search=lambda *about, **more: None,
        result=answer,
        response=[],
        strategy=SimpleNamespace(close=lambda: None),
        socket=None,
    )
    return opened


# RFC 4511, 4.1.9: time, size and administrative limits; busy, unavailable.
@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        ((4, 4), LimitExceeded),
        ((3, 52), LimitExceeded),
        ((52, 11), LimitExceeded),
        ((51, 52), DirectoryError),
    ],
)
def test_an_answer_beyond_a_limit_is_told_from_none(
    monkeypatch: pytest.MonkeyPatch, codes: tuple[int, int], kind: type[Exception]
) -> None:
    answers = dict(zip(ACCESS.servers, codes, strict=True))
    monkeypatch.setattr(
        servers, "DirectoryConnection", lambda url, _: connection(url, answers[url])
    )
    asked = servers.Servers(ACCESS, logging.getLogger("test"))
    with pytest.raises(DirectoryError) as raised:
        asked.ask(lambda one: one.search("dc=x", "(cn=*)", ["cn"]), time.monotonic() + 20)
    assert type(raised.value) is kind
    assert f"result {codes[0]}" in str(raised.value)
