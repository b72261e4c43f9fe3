"""Logins against Active Directory: Samba's domain controller, which is one but for its maker."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tornado import web

from dsportal.authentication import connection, membership
from dsportal.authentication.ldap import DirectoryAuthenticator
from dsportal.authentication.words import CLOSED, MUST_CHANGE
from tests.checkout import PYTHONPATH
from tests.integration.authentication import machine, samba
from tests.integration.authentication.logins import log_in as log_in_with
from tests.integration.authentication.machine import Machine
from tests.integration.authentication.samba import BASE, NORMAL, PASSWORD, READER_DN, USERS, Samba

ALL_GROUPS = ["Data-Scientists", "Domain Users", "Everybody", "inner", "middle"]
READER = {"lookup_dn_search_user": READER_DN, "lookup_dn_search_password": PASSWORD}
WAYS = pytest.mark.parametrize("way", [{}, READER], ids=["as the user", "as a reader"])
MakeAuthenticator = Callable[..., DirectoryAuthenticator]


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Samba]:
    """A domain controller."""
    with samba.running(tmp_path_factory.mktemp("ad")) as running:
        yield running


@pytest.fixture
def authenticator(domain: Samba) -> MakeAuthenticator:
    """Make an authenticator with what a site has to set, and no more."""

    def make(**traits: Any) -> DirectoryAuthenticator:
        return DirectoryAuthenticator(
            **{
                "kind": "active_directory",
                "servers": [domain.tls_url],
                "ca_file": domain.ca_file,
                "user_search_base": USERS,
                "group_search_base": USERS,
                "allowed_groups": {"Data-Scientists"},
                "contact": "Ada",
                **traits,
            }
        )

    return make


def log_in(
    authenticator: DirectoryAuthenticator, name: str, password: str = PASSWORD
) -> dict[str, Any] | None:
    return log_in_with(authenticator, name, password)


@WAYS
@pytest.mark.parametrize(
    "typed", ["jane.doe", "Jane.Doe", "JANE.DOE", "jane.doe@corp.example", "Jane.Doe@CORP.EXAMPLE"]
)
def test_one_person_has_one_name_however_it_is_typed(
    authenticator: MakeAuthenticator, way: dict[str, str], typed: str
) -> None:
    user = log_in(authenticator(**way), typed)
    assert user is not None
    assert user["name"] == "jane.doe"


@WAYS
def test_groups_of_groups_and_the_primary_group_count(
    authenticator: MakeAuthenticator, way: dict[str, str]
) -> None:
    user = log_in(authenticator(**way), "jane.doe")
    assert user is not None
    assert user["groups"] == ALL_GROUPS


def test_the_server_itself_follows_groups_of_groups(
    authenticator: MakeAuthenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "_MOST_LEVELS", 0)
    user = log_in(authenticator(), "jane.doe")
    assert user is not None
    assert user["groups"] == ALL_GROUPS


def test_groups_are_walked_where_the_server_does_not_say_what_it_can(
    authenticator: MakeAuthenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_ACTIVE_DIRECTORY", "nothing")
    user = log_in(authenticator(), "jane.doe")
    assert user is not None
    assert user["groups"] == ALL_GROUPS


@WAYS
@pytest.mark.parametrize("name", ["jane.doe", "off", "over", "must", "nobody", "dc1$", "*"])
def test_a_wrong_password_learns_nothing(
    authenticator: MakeAuthenticator, way: dict[str, str], name: str
) -> None:
    assert log_in(authenticator(**way), name, "wrong") is None


@pytest.mark.parametrize("typed", ["jane.doe@other.example", "CORP\\jane.doe", "jane.doe@"])
def test_a_name_of_another_realm_is_refused(authenticator: MakeAuthenticator, typed: str) -> None:
    assert log_in(authenticator(), typed) is None


@WAYS
@pytest.mark.parametrize(
    ("name", "words", "reason"),
    [
        ("off", CLOSED, "disabled (533)"),
        ("over", CLOSED, "expired (701)"),
        ("must", MUST_CHANGE, "must be changed (773)"),
    ],
)
def test_a_right_password_is_told_why_it_is_of_no_use(
    authenticator: MakeAuthenticator,
    way: dict[str, str],
    name: str,
    words: str,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(web.HTTPError) as caught:
        log_in(authenticator(**way), name)
    assert caught.value.status_code == 403
    assert caught.value.log_message == words.format(contact="Ada")
    assert reason in caplog.text


def test_who_calls_himself_like_somebody_else_does_not_become_them(
    authenticator: MakeAuthenticator, domain: Samba
) -> None:
    # Mallory's userPrincipalName is jane.doe@guests.example, and takes Mallory's password.
    own = f"replace: unicodePwd\n{samba.password_line('Mallory-1234')}"
    domain.change(f"dn: CN=Mallory,{USERS}\nchangetype: modify\n{own}")
    used = authenticator(bind_as="{name}@guests.example", allowed_groups={"Domain Users"})
    assert log_in(used, "jane.doe", "Mallory-1234") is None


@WAYS
def test_the_whole_domain_is_searched_without_references_to_others(
    authenticator: MakeAuthenticator, way: dict[str, str]
) -> None:
    whole = {"user_search_base": BASE, "group_search_base": BASE}
    user = log_in(authenticator(**whole, **way), "jane.doe")
    assert user is not None
    # With those of the branch CN=Builtin.
    assert user["groups"] == [*ALL_GROUPS[:3], "Users", *ALL_GROUPS[3:]]


def test_references_to_other_domains_are_refused(
    authenticator: MakeAuthenticator,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(connection, "_ACTIVE_DIRECTORY", "nothing")
    assert log_in(authenticator(user_search_base=BASE), "jane.doe") is None
    assert f"refers the search under {BASE} to ldaps://corp.example/" in caplog.text


def test_a_domain_that_demands_encryption_is_a_failure_not_a_refusal(
    authenticator: MakeAuthenticator, domain: Samba, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(web.HTTPError) as caught:
        log_in(authenticator(servers=[domain.url], tls_strategy="insecure"), "jane.doe")
    assert caught.value.status_code == 503
    assert "strongerAuthRequired" in caplog.text


def test_starttls_logs_in(authenticator: MakeAuthenticator, domain: Samba) -> None:
    used = authenticator(servers=[domain.url], tls_strategy="before_bind")
    assert log_in(used, "jane.doe") is not None


def test_who_is_disabled_has_to_log_in_again(
    authenticator: MakeAuthenticator, domain: Samba, caplog: pytest.LogCaptureFixture
) -> None:
    def refreshed() -> bool | dict[str, Any]:
        used = authenticator(**READER)
        return asyncio.run(used.refresh_user(SimpleNamespace(name="jane.doe")))

    before = refreshed()
    control = f"dn: CN=Jane Doe,{USERS}\nchangetype: modify\nreplace: userAccountControl\n"
    domain.change(f"{control}userAccountControl: {samba.DISABLED}\n")
    during = refreshed()
    domain.change(f"{control}userAccountControl: {NORMAL}\n")
    assert isinstance(before, dict)
    assert before["groups"] == ALL_GROUPS
    assert during is False
    assert "the account is closed: userAccountControl = 514" in caplog.text


@pytest.fixture(scope="module")
def accounts(domain: Samba, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine whose users are the domain's."""
    with machine.running(
        tmp_path_factory.mktemp("machine"),
        accounts_directory_kind="active_directory",
        accounts_directory_servers=[domain.tls_url],
        accounts_directory_ca_file=domain.ca_file,
        accounts_directory_base=USERS,
        accounts_directory_bind_dn=READER_DN,
        accounts_directory_bind_password=PASSWORD,
        accounts_directory_domain_sid=domain.domain_sid(),
    ) as running:
        yield running


def test_the_machine_and_the_portal_know_the_same_groups(
    authenticator: MakeAuthenticator, accounts: Machine
) -> None:
    user = log_in(authenticator(), "jane.doe")
    numbers = accounts.told("/usr/bin/id", "-G", "jane.doe").split()
    groups = {accounts.told("/usr/bin/getent", "group", number).split(":")[0] for number in numbers}
    assert user is not None
    # nslcd does not follow the groups of the primary group.
    assert groups == set(user["groups"]) - {"Everybody"}


LOG_IN = """\
import asyncio, sys
sys.path[:0] = sys.argv[1].split(":")
from dsportal.authentication.ldap import DirectoryAuthenticator
used = DirectoryAuthenticator(
    kind="active_directory", servers=[sys.argv[2]], ca_file=sys.argv[3],
    user_search_base=sys.argv[4], group_search_base=sys.argv[4], allowed_groups={"Domain Users"},
)
data = {"username": sys.argv[5], "password": sys.argv[6]}
user = asyncio.run(used.authenticate(None, data))
print(user and user["name"])
"""


@pytest.mark.parametrize(("name", "logged_in"), [("jane.doe", "None"), ("mallory", "mallory")])
def test_who_has_capitals_on_the_machine_is_refused_there(
    domain: Samba, accounts: Machine, name: str, logged_in: str
) -> None:
    own = f"replace: unicodePwd\n{samba.password_line(PASSWORD)}"
    domain.change(f"dn: CN=Mallory,{USERS}\nchangetype: modify\n{own}")
    given = [PYTHONPATH, domain.tls_url, domain.ca_file, USERS, name, PASSWORD]
    assert accounts.told(sys.executable, "-c", LOG_IN, *given) == logged_in
