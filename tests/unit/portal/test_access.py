"""How long logins count and what admins may, onto a bare Config."""

from typing import Any

import pytest
from jupyterhub import roles
from jupyterhub.apihandlers import default_handlers
from jupyterhub.apihandlers.auth import CookieAPIHandler, OAuthAuthorizeHandler, TokenAPIHandler
from jupyterhub.scopes import scope_definitions

from dsportal.hub import access
from dsportal.hub.patches.access_audit import AuditedAuthorizeHandler
from dsportal.settings.whole import Settings

DAY = 86_400


def scopes_within(scope: str) -> set[str]:
    inner = scope_definitions[scope].get("subscopes", ())
    return {scope}.union(*(scopes_within(one) for one in inner))


def test_logins_and_tokens_end(c: Any, settings: Settings) -> None:
    access.configure_access(c, settings)
    assert c.JupyterHub.cookie_max_age_days == 7
    assert c.JupyterHub.oauth_token_expires_in == DAY
    assert c.JupyterHub.token_expires_in_max_seconds == 90 * DAY


def test_no_scope_of_an_admin_leads_into_a_session(c: Any, settings: Settings) -> None:
    access.configure_access(c, settings)
    (admin,) = (role for role in roles.get_default_roles() if role["name"] == "admin")
    held = set().union(*(scopes_within(scope) for scope in admin["scopes"]))
    # Users can be added; that none can be renamed, the integration tests show.
    leading = {"access:servers", "tokens", "shares", "admin:groups", "groups"}
    leading |= {"admin:services", "proxy", "admin:server_state"}
    assert not held & leading
    # With admin:users comes what an authenticator keeps of users: these keep nothing.
    assert "enable_auth_state" not in c.Authenticator
    assert {"list:users", "read:servers", "delete:servers", "admin-ui"} <= held


def test_the_role_is_made_narrow_once(c: Any, settings: Settings) -> None:
    access.configure_access(c, settings)
    narrowed = roles.get_default_roles
    access.configure_access(c, settings)
    assert roles.get_default_roles is narrowed


def test_nobody_may_enter_by_default(c: Any, settings: Settings) -> None:
    c.JupyterHub.load_roles = []
    access.configure_access(c, settings)
    assert c.JupyterHub.load_roles == []


def test_the_groups_that_are_named_may_enter(c: Any, settings: Settings) -> None:
    c.JupyterHub.load_roles = []
    named = settings.access.model_copy(update={"server_access_groups": ("support",)})
    access.configure_access(c, settings.model_copy(update={"access": named}))
    (role,) = c.JupyterHub.load_roles
    assert (role["groups"], role["scopes"]) == (["support"], ["access:servers"])


@pytest.mark.parametrize("gone", [CookieAPIHandler, TokenAPIHandler, OAuthAuthorizeHandler])
def test_jupyterhubs_own_handler_is_not_among_the_routes(
    c: Any, settings: Settings, gone: type
) -> None:
    access.configure_access(c, settings)
    handlers = [one[1] for one in default_handlers]
    assert gone not in handlers
    assert handlers.count(AuditedAuthorizeHandler) == 1
