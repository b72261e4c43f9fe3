"""Settings of access: how long a login is valid, and who may open other users' sessions."""

from dsportal.settings.table import Table, setting
from dsportal.values import Texts


class AccessSettings(Table):
    """For how long logins and tokens count, and who may open the sessions of others."""

    login_days: int = setting(
        7, "After how long a browser must log in again.", unit="days", ge=1, le=90
    )
    session_login_hours: int = setting(
        24,
        "After how long a browser's login at a session or a page of a service is renewed; while "
        "the login at the portal counts, the user does not notice.",
        unit="hours",
        ge=1,
        le=2160,
    )
    token_days: int = setting(
        90,
        "The longest life of a token that a user makes on the page Tokens or through the API; one "
        "without an end gets this.",
        unit="days",
        ge=1,
        le=3650,
    )
    server_access_groups: Texts = setting(
        (),
        "The groups whose members may open the sessions of all users, with all that is in them. "
        "Nobody may by default, no admin either; each opening is logged, and its user sees it.",
    )
