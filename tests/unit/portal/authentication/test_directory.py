"""Whose password a directory is asked about; a stand-in for the connection to it."""

import logging
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

# ldap3 2.9.1 uses names that pyasn1 has renamed; nothing of ours can mend that.
with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from dsportal.authentication.connection import LdapAccess, LookupAccount
    from dsportal.authentication.directory import Directory, DirectoryAccount

from dsportal.authentication.entry import Entry
from tests.unit.portal.authentication.layouts import POSIX

READER = LookupAccount("cn=reader,dc=example", "reader's")
ADA = "uid=ada,ou=people,dc=example"
ENTRY = Entry(ADA, {"uid": [b"ada"]})


class Connection:
    """Accepts these pairs of a name and a password, and remembers who has bound."""

    def __init__(self, *accepted: tuple[str, str]) -> None:
        self._accepted = {(READER.dn, READER.password), *accepted}
        self.bound: list[str] = []

    def bind(self, name: str, password: str) -> bool:
        self.bound.append(name)
        return (name, password) in self._accepted

    def search(self, base: str, wanted: str, attributes: Any, **more: Any) -> list[Entry]:
        return [ENTRY]


def log_in(
    connection: Connection, lookup_account: LookupAccount | None, bind_as: str = ""
) -> DirectoryAccount | None:
    layout = replace(POSIX, bind_as=bind_as)
    access = LdapAccess(
        servers=("ldap://127.0.0.1",),
        start_tls=False,
        ca_file="",
        connect_seconds=1,
        receive_seconds=1,
        next_server_seconds=1,
    )
    directory: Any = Directory(access, layout, lookup_account, logging.getLogger("test"))
    directory._servers = SimpleNamespace(ask=lambda question, deadline: question(connection))
    directory._membership = SimpleNamespace(of=lambda *about: ("staff",))
    found: DirectoryAccount | None = directory.log_in("ada", "ada's", deadline=0.0)
    return found


def test_the_password_is_tried_as_the_entry_that_the_reader_found() -> None:
    connection = Connection((ADA, "ada's"))
    assert log_in(connection, READER) == DirectoryAccount("ada", ("staff",))
    # Groups are the reader's to see.
    assert connection.bound == [READER.dn, ADA, READER.dn]


def test_a_name_that_the_reader_finds_is_no_login_without_the_password() -> None:
    connection = Connection()
    assert log_in(connection, READER) is None
    assert connection.bound == [READER.dn, ADA]


@pytest.mark.parametrize("is_theirs", [True, False])
def test_a_password_for_another_kind_of_name_must_be_the_entrys_too(is_theirs: bool) -> None:
    own = [(ADA, "ada's")] if is_theirs else []
    connection = Connection(("ada@example.org", "ada's"), *own)
    found = log_in(connection, None, bind_as="{name}@example.org")
    assert (found is not None) is is_theirs
    assert connection.bound == ["ada@example.org", ADA]
