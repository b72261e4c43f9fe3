"""The machine's Unix users and groups are those that the portal's login knows."""

from collections.abc import Iterator

import pytest

from tests.integration.authentication import machine
from tests.integration.authentication.certificates import make_certificates
from tests.integration.authentication.conftest import MakeAuthenticator
from tests.integration.authentication.logins import log_in
from tests.integration.authentication.machine import Machine
from tests.integration.authentication.slapd import (
    BASE,
    GROUP_BASE,
    PASSWORD,
    READER_DN,
    USER_BASE,
    Slapd,
)
from tests.network.sockets import free_port
from tests.pages import how_to

# A Unix group has a number. In RFC 2307bis it is a posixGroup as well, which slapd's own schema
# does not allow; so the number alone is asked for below.
NESTED = f"""\
dn: cn=outer,{GROUP_BASE}
objectClass: groupOfNames
objectClass: extensibleObject
cn: outer
gidNumber: 10020
member: cn=inner,{GROUP_BASE}

dn: cn=inner,{GROUP_BASE}
objectClass: groupOfNames
objectClass: extensibleObject
cn: inner
gidNumber: 10021
member: uid=admin1,{USER_BASE}
"""


@pytest.fixture(scope="module")
def accounts(directory: Slapd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine with two servers, of which one refuses, TLS, a reader, and groups of groups."""
    directory.change(NESTED, "ldapadd")
    with machine.running(
        tmp_path_factory.mktemp("machine"),
        accounts_directory_servers=[f"ldap://127.0.0.1:{free_port()}", directory.tls_url],
        accounts_directory_ca_file=directory.ca_file,
        accounts_directory_base=BASE,
        accounts_directory_group_filter="(gidNumber=*)",
        accounts_directory_bind_dn=READER_DN,
        accounts_directory_bind_password=PASSWORD,
    ) as running:
        yield running
    directory.change(
        "".join(
            f"dn: cn={name},{GROUP_BASE}\nchangetype: delete\n\n" for name in ("outer", "inner")
        )
    )


def test_a_user_of_the_directory_is_one_of_the_machine(accounts: Machine) -> None:
    entry = accounts.told("/usr/bin/getent", "passwd", "user1").split(":")
    assert (entry[0], entry[5]) == ("user1", "/home/user1")


def test_the_how_tos_commands_find_a_user(accounts: Machine, directory: Slapd) -> None:
    words = {
        "ldaps://ldap1.example.org": directory.tls_url,
        "cn=portal,ou=services,dc=example,dc=org": READER_DN,
        "ou=people,dc=example,dc=org": USER_BASE,
        "jane": "user1",
    }
    block = how_to("connect-your-directory.md", 1, words)
    # Without a terminal the password is read from the standard input.
    typed = f"export LDAPTLS_CACERT={directory.ca_file}\necho {PASSWORD} | {{ {block} }}"
    said = accounts.told("/usr/bin/setsid", "--wait", "/bin/sh", "-ec", typed)
    assert f"dn: uid=user1,{USER_BASE}" in said
    entry, groups = said.splitlines()[-2:]
    assert entry.startswith("user1:")
    assert "(user1) gid=" in groups
    assert "vision" not in groups  # which is no Unix group: it has no number
    assert "data-scientists" in groups


def test_the_machine_and_the_portal_know_the_same_groups(
    accounts: Machine, authenticator: MakeAuthenticator
) -> None:
    user = log_in(authenticator(), "admin1")
    assert user is not None
    of_machine = set(accounts.told("/usr/bin/id", "-nG", "admin1").split())
    assert {"inner", "outer", "portal-admins"} == set(user["groups"])
    # "users" is the number 100 that the test's people have as primary group.
    assert of_machine - {"users"} == set(user["groups"])


def test_an_account_of_the_machine_comes_first(accounts: Machine) -> None:
    assert accounts.told("/usr/bin/getent", "passwd", "root").startswith("root:x:0:0:root:/root")


def test_a_certificate_of_another_authority_is_refused(
    directory: Slapd, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    make_certificates(other / "certificates")
    with machine.running(
        other,
        accounts_directory_servers=[directory.tls_url],
        accounts_directory_ca_file=str(other / "certificates/ca.pem"),
        accounts_directory_base=BASE,
    ) as running:
        assert running.told("/usr/bin/getent", "passwd", "user1") == ""
