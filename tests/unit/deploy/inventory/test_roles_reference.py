"""The variables of the roles: each is described, each has a default, and the page says so."""

from pathlib import Path

import pytest
import roles_reference

PAGE = Path(__file__).resolve().parents[4] / "docs/reference/roles.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == roles_reference.page(), "run make docs"


@pytest.mark.parametrize("role", roles_reference.roles(), ids=lambda role: role.name)
def test_a_roles_defaults_are_its_described_variables(role: Path) -> None:
    _, options = roles_reference.described(role)
    assert set(roles_reference.defaults(role)) == set(options)
