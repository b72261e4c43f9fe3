"""Access configuration: who may do what at the hub, and for how long a login is valid.

JupyterHub's role ``admin`` may do everything: read all notebooks, make tokens for others, rename a
user and so become one. Here an admin sees, starts and stops sessions, and adds users. To open
another user's session is a right of its own, for the members of ``access.server_access_groups``.
"""

from datetime import timedelta

from traitlets.config import Config

from dsportal.hub.patches import (
    access_audit,
    admin_role,
    api_hardening,
    interrupted_stop,
    next_url,
    session_tokens,
)
from dsportal.response_headers import Unversioned
from dsportal.settings.whole import Settings

SERVER_ACCESS = "server-access"
"""The role of those who may open the sessions of others."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    # A page that opened one of the hub's, or was opened by it, has no hold on it.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def configure_access(c: Config, settings: Settings) -> None:
    """Set how long logins and tokens live, and what admins and those who may enter can do."""
    access = settings.access
    c.JupyterHub.cookie_max_age_days = float(access.login_days)
    session_login = timedelta(hours=access.session_login_hours)
    c.JupyterHub.oauth_token_expires_in = round(session_login.total_seconds())
    token = timedelta(days=access.token_days)
    c.JupyterHub.token_expires_in_max_seconds = round(token.total_seconds())
    # Lax: a link from elsewhere opens the portal with the login, a form from elsewhere does not.
    c.JupyterHub.tornado_settings.update(
        {
            "cookie_options": {"SameSite": "Lax"},
            "headers": dict(HEADERS),
            "transforms": [Unversioned],
        }
    )
    admin_role.install()
    access_audit.install()
    next_url.install()
    api_hardening.install()
    interrupted_stop.install()
    session_tokens.install()
    if access.server_access_groups:
        role = {"name": SERVER_ACCESS, "groups": list(access.server_access_groups)}
        c.JupyterHub.load_roles.append({**role, "scopes": ["access:servers"]})
