"""The authenticators' own options."""

import warnings

import pytest
from traitlets import TraitError
from traitlets.config import Config

# ldap3 2.9.1 uses names that pyasn1 has renamed; nothing of ours can mend that.
with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from portal.authentication.ldap import DirectoryAuthenticator

from portal.authentication.pam import PamAuthenticator


@pytest.mark.parametrize("section", ["LDAPAuthenticator", "DirectoryAuthenticator"])
def test_an_option_that_has_no_effect_here_is_refused(section: str) -> None:
    config = Config({section: {"search_filter": "(department=ai)"}})
    with pytest.raises(TraitError, match=rf"c\.{section}\.search_filter: not an option of"):
        DirectoryAuthenticator(config=config)


@pytest.mark.parametrize("kind", [DirectoryAuthenticator, PamAuthenticator])
def test_groups_are_kept_and_nobody_is_allowed_by_default(
    kind: type[DirectoryAuthenticator] | type[PamAuthenticator],
) -> None:
    authenticator = kind()
    assert authenticator.manage_groups is True
    assert authenticator.allow_all is False
    assert authenticator.allow_existing_users is False
    assert authenticator.allowed_groups == set()
