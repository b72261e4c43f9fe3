"""A directory whose answer is: ask somebody else; or: there are two."""

from collections.abc import Iterator

import pytest

from tests.integration.authentication.conftest import MakeAuthenticator
from tests.integration.authentication.logins import log_in, reader
from tests.integration.authentication.slapd import BASE, GROUP_BASE, Slapd, person

PARTLY = f"ou=partly,{BASE}"
ELSEWHERE = f"ou=elsewhere,{PARTLY}"
OTHER_SERVER = "ldap://directory.example.org"


@pytest.fixture(scope="module", autouse=True)
def a_branch_elsewhere(directory: Slapd) -> Iterator[None]:
    """A branch of which a part is kept by another server."""
    entries = (
        f"dn: {PARTLY}\nobjectClass: organizationalUnit\nou: partly\n",
        f"dn: {ELSEWHERE}\nobjectClass: referral\nobjectClass: extensibleObject\n"
        f"ou: elsewhere\nref: {OTHER_SERVER}/{ELSEWHERE}\n",
        person("here", PARTLY),
    )
    directory.change("\n".join(entries), "ldapadd")
    yield
    dns = (f"uid=here,{PARTLY}", ELSEWHERE, PARTLY)
    gone = "\n".join(f"dn: {dn}\nchangetype: delete\n" for dn in dns)
    directory.change(gone, "ldapmodify", "-M")


def test_who_is_found_beside_a_reference_to_more_is_refused(
    authenticator: MakeAuthenticator, caplog: pytest.LogCaptureFixture
) -> None:
    used = authenticator(user_search_base=PARTLY, **reader())
    assert log_in(used, "here") is None
    assert f"refers the search under {PARTLY} to {OTHER_SERVER}" in caplog.text


def test_a_branch_that_is_elsewhere_is_refused(
    authenticator: MakeAuthenticator, caplog: pytest.LogCaptureFixture
) -> None:
    used = authenticator(user_search_base=ELSEWHERE, **reader())
    assert log_in(used, "here") is None
    assert f"refers the search under {ELSEWHERE} to {OTHER_SERVER}" in caplog.text


@pytest.mark.parametrize("base", [PARTLY, ELSEWHERE])
def test_groups_that_are_elsewhere_are_not_left_out(
    authenticator: MakeAuthenticator, base: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert log_in(authenticator(group_search_base=base), "user1") is None
    assert f"refers the search under {base} to {OTHER_SERVER}" in caplog.text


def test_the_other_server_gets_no_connection(
    authenticator: MakeAuthenticator, caplog: pytest.LogCaptureFixture
) -> None:
    used = authenticator(user_search_base=PARTLY, **reader())
    log_in(used, "here")
    assert "Directory server" not in caplog.text


def test_two_entries_are_nobody(
    authenticator: MakeAuthenticator, caplog: pytest.LogCaptureFixture
) -> None:
    assert log_in(authenticator(**reader()), "twice") is None
    assert "Login of 'twice' refused: 2 entries: uid=twice,ou=people," in caplog.text
    assert GROUP_BASE not in caplog.text
