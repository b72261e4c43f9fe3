"""Names that people type at the login."""

import pytest

from dsportal.authentication.names import shown, unix_name, without_realm


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("user1", "user1"),
        ("USER1", "user1"),
        ("_service", "_service"),
        ("a.b-c_d", "a.b-c_d"),
        ("a" * 32, "a" * 32),
        ("a" * 33, None),
        ("", None),
        (" user1", None),
        ("user1\n", None),
        ("1user", None),
        ("-user", None),
        ("..", None),
        ("user/1", None),
        ("user1@example.org", None),
        ("user1)(uid=*", None),
        ("user1,ou=people", None),
        ("us\x00er", None),
        ("\u212aim", None),
        ("\u0131user", None),
    ],
)
def test_a_typed_name_is_one_unix_name_or_none(typed: str, name: str | None) -> None:
    assert unix_name(typed) == name


@pytest.mark.parametrize(
    ("typed", "realm", "name"),
    [
        ("user1@corp.example", "corp.example", "user1"),
        ("user1@CORP.Example", "corp.example", "user1"),
        ("user1", "corp.example", "user1"),
        ("user1@", "corp.example", "user1@"),
        ("user1@other.example", "corp.example", "user1@other.example"),
        ("user1@x@corp.example", "corp.example", "user1@x@corp.example"),
        ("user1@corp.example", "", "user1@corp.example"),
        ("user1@", "", "user1@"),
    ],
)
def test_only_the_sites_own_realm_is_taken_off(typed: str, realm: str, name: str) -> None:
    assert without_realm(typed, realm) == name


def test_a_typed_name_is_one_short_line_in_the_log() -> None:
    assert shown("a\nb\u2028") == r"'a\nb\u2028'"
    assert len(shown("x" * 10_000)) < 50
