"""JupyterHub's role ``admin``, without what leads into the sessions of others.

JupyterHub gives it every right, and refuses a role of this name with other scopes in
``load_roles``. Whatever asks for the roles that are there from the start asks one function.

Tried with JupyterHub 6.1.1.
"""

from collections.abc import Callable
from typing import Any

from jupyterhub import roles

ADMIN_SCOPES = (
    "admin-ui",
    "admin:users",
    "servers",
    "list:groups",
    "read:groups",
    "list:services",
    "read:services",
    "read:roles",
    "read:hub",
    "read:metrics",
    "access:services",
    "shutdown",
)
"""None of these leads into a session. Those that do, one way or the other: ``access:servers``,
``shares`` and ``tokens`` at once, ``admin:groups`` by joining, ``admin:services`` and ``proxy`` by
a service or a route of one's own. ``admin:users`` would by renaming, which ``api_hardening``
closes."""


class NarrowedRoles:
    """The roles that JupyterHub begins with, its ``admin`` narrowed."""

    def __init__(self, original: Callable[[], list[dict[str, Any]]]) -> None:
        self._original = original

    def __call__(self) -> list[dict[str, Any]]:
        """Give them anew, as JupyterHub's own function does."""
        narrowed = [dict(role) for role in self._original()]
        (admin,) = (role for role in narrowed if role["name"] == "admin")
        admin["description"] = "Sees, starts and stops sessions, and adds users"
        admin["scopes"] = list(ADMIN_SCOPES)
        return narrowed


def install() -> None:
    """Put the function in the place of JupyterHub's own, once."""
    if not isinstance(roles.get_default_roles, NarrowedRoles):
        roles.get_default_roles = NarrowedRoles(roles.get_default_roles)
