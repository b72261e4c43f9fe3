"""Settings of access: how long a login is valid, and who may open other users' sessions."""

from dsportal.settings.table import Table, setting
from dsportal.values import Texts


class AccessSettings(Table):
    """Lifetimes of logins and tokens, and access to other users' sessions."""

    login_days: int = setting(7, "How long a login in a browser lasts.", unit="days", ge=1, le=90)
    session_login_hours: int = setting(
        24,
        "How long a browser's login at a session or at a service's page lasts. While the login at "
        "the portal lasts, it is renewed without the user noticing.",
        unit="hours",
        ge=1,
        le=2160,
    )
    token_days: int = setting(
        90,
        "The longest lifetime of a token that a user makes on the page Tokens or through the API; "
        "a token without an expiry date gets this one.",
        unit="days",
        ge=1,
        le=3650,
    )
    server_access_groups: Texts = setting(
        (),
        "The groups whose members may open all users' sessions, with everything in them. By "
        "default nobody may, not even admins. Each access is logged, and shown to the session's "
        "user.",
    )
