"""Whose groups are found, from what a directory says of a person; a stand-in for it."""

import logging
import warnings
from dataclasses import replace
from typing import Any

import pytest

# ldap3 2.9.1 uses names that pyasn1 has renamed; nothing of ours can mend that.
with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from dsportal.authentication.membership import Membership

from dsportal.authentication.entry import Entry, is_below
from tests.unit.portal.authentication.layouts import POSIX

BASE = POSIX.group_base


class Connection:
    """Finds no more than the person's entry has told."""

    is_active_directory = False

    def search(self, base: str, wanted: str, attributes: Any) -> list[Entry]:
        return []


def groups_of(*told: str, nested_groups: bool = True) -> tuple[str, ...]:
    layout = replace(POSIX, nested_groups=nested_groups)
    person = Entry("uid=ada,ou=people,dc=example", {"memberof": [dn.encode() for dn in told]})
    connection: Any = Connection()
    return Membership(layout, logging.getLogger("test")).of(connection, person, "ada")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("staff", "staff"),
        ("C# developers", "C# developers"),  # as slapd 2.5 writes it
        (r"a\2Bb", "a+b"),  # slapd's way, and Active Directory's
        (r"a\+b", "a+b"),
        (r"caf\C3\A9", "café"),
    ],
)
def test_a_name_is_read_from_a_dn_as_directories_write_it(written: str, name: str) -> None:
    assert groups_of(f"cn={written},{BASE}", f"cn=x,{BASE}") == tuple(sorted([name, "x"]))


def test_a_group_of_another_branch_is_none_whatever_its_name() -> None:
    assert groups_of("cn=C# developers,ou=lists,dc=example", f"cn=staff,{BASE}") == ("staff",)


def test_groups_of_groups_do_not_count_by_another_way() -> None:
    """389 Directory Server lists them as the person's, unless its memberOfSkipNested is on."""
    assert groups_of(f"cn=admins,{BASE}", nested_groups=False) == ()


def test_a_branch_is_the_same_in_either_spelling() -> None:
    assert is_below(r"cn=a,ou=R\2C D,dc=example", r"ou=R\, D,dc=example")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("\x0badmins", "\x0badmins"),  # which slapd 2.5 takes for another name than admins
        ("admins\t", "admins\t"),
        ("\nadmins", "\nadmins"),
        ("admins\u00a0", "admins\u00a0"),
        (r"admins\ ", "admins "),
        (r"admins\20", "admins "),
        ("admins\\\\\u2003", "admins\\\u2003"),
        ("\n", "\n"),
    ],
    ids=repr,
)
def test_a_name_with_white_space_at_its_edge_is_not_the_name_without(
    written: str, name: str
) -> None:
    """Who may make groups could take the admins' name; what was no name at all ended the look."""
    assert groups_of(f"cn={written}, {BASE}") == (name,)
