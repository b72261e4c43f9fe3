"""What groups make of a person."""

import pytest

from dsportal.authentication.groups import Standing, standing

ALLOWED = frozenset({"data-scientists", "guests"})
ADMIN = frozenset({"portal-admins"})


@pytest.mark.parametrize(
    ("groups", "allowed", "admin"),
    [
        ([], False, False),
        (["staff"], False, False),
        (["data-scientists"], True, False),
        (["guests", "staff"], True, False),
        (["portal-admins"], True, True),
        (["portal-admins", "data-scientists"], True, True),
        (["Portal-Admins"], False, False),
        (["portal-admins "], False, False),
        ([""], False, False),
    ],
)
def test_groups_give_what_the_settings_say(groups: list[str], allowed: bool, admin: bool) -> None:
    found = standing(groups, allowed=ALLOWED, admin=ADMIN)
    assert (found.allowed, found.admin) == (allowed, admin)


def test_the_hubs_groups_are_sorted_and_each_one_once() -> None:
    found = standing(["b", "a", "b"], allowed=ALLOWED, admin=ADMIN)
    assert found == Standing(allowed=False, admin=False, groups=("a", "b"))


def test_without_admin_groups_nobody_is_an_admin() -> None:
    assert not standing(["portal-admins"], allowed=ALLOWED, admin=frozenset()).admin
