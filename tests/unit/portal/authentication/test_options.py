"""The authenticators' own options."""

import warnings

import pytest
from traitlets import TraitError
from traitlets.config import Config

# ldap3 2.9.1 uses names that pyasn1 has renamed; nothing of ours can mend that.
with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from dsportal.authentication.ldap import DirectoryAuthenticator

from dsportal.authentication.pam import PamAuthenticator


@pytest.mark.parametrize("section", ["LDAPAuthenticator", "DirectoryAuthenticator"])
def test_an_option_that_has_no_effect_here_is_refused(section: str) -> None:
    config = Config({section: {"search_filter": "(department=ai)"}})
    with pytest.raises(TraitError, match=rf"c\.{section}\.search_filter: not an option of"):
        DirectoryAuthenticator(config=config)


@pytest.mark.parametrize("option", ["user_filter", "group_search_filter"])
@pytest.mark.parametrize(
    "text", ["(objectClass=person", "objectClass=", "(member={dn})", "((a=b))("]
)
def test_a_filter_that_is_none_is_refused_at_the_start(option: str, text: str) -> None:
    with pytest.raises(TraitError, match="not a filter of a directory"):
        DirectoryAuthenticator(**{option: text})


def test_names_follow_from_the_kind_of_directory() -> None:
    used = DirectoryAuthenticator(
        kind="active_directory", user_search_base="OU=Staff,DC=corp,DC=example"
    )
    assert used.user_attribute == "sAMAccountName"
    assert used.group_attribute == "sAMAccountName"
    assert used.group_search_filter == "(member={userdn})"
    assert used.bind_as == "{name}@corp.example"


def test_each_name_can_be_another() -> None:
    used = DirectoryAuthenticator(kind="active_directory", user_attribute="uid", realm="EXAMPLE")
    assert (used.user_attribute, used.group_attribute) == ("uid", "sAMAccountName")
    assert used.bind_as == "{name}@EXAMPLE"


@pytest.mark.parametrize("kind", [DirectoryAuthenticator, PamAuthenticator])
def test_groups_are_kept_and_nobody_is_allowed_by_default(
    kind: type[DirectoryAuthenticator] | type[PamAuthenticator],
) -> None:
    authenticator = kind()
    assert authenticator.manage_groups is True
    assert authenticator.allow_all is False
    assert authenticator.allow_existing_users is False
    assert authenticator.allowed_groups == set()
