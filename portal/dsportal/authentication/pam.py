"""Logins against the machine's own accounts, for a hub that is not root.

PAM's pam_unix lets a program check the password of somebody else only where it can read
``/etc/shadow``: the hub's user needs to be in group ``shadow``.
"""

import asyncio
import grp
import os
import pwd
from typing import Any

from jupyterhub.auth import PAMAuthenticator
from tornado import web
from traitlets import default

from dsportal.authentication.admission import NO_ANSWER, GroupAdmission
from dsportal.authentication.names import shown, unix_name
from dsportal.authentication.words import PAM_SILENT


class PamAuthenticator(GroupAdmission, PAMAuthenticator):  # type: ignore[misc]  # no types
    """PAMAuthenticator with time limits, one name per person, and groups that decide."""

    @default("executor_threads")
    def _default_executor_threads(self) -> int:
        # A wrong password holds its thread for some seconds (pam_faildelay).
        return 16

    async def authenticate(self, handler: Any, data: dict[str, str]) -> dict[str, Any] | None:
        """Say who it is that logs in; None where name and password do not belong together."""
        typed, password = data.get("username", ""), data.get("password", "")
        name = unix_name(typed)
        if name is None or not password:
            self.log.warning("Login of %s refused: no such name, or no password", shown(typed))
            return None
        try:
            async with asyncio.timeout(self.login_timeout):
                asked = {"username": name, "password": password}
                if not await super().authenticate(handler, asked):
                    return None
                groups = await asyncio.to_thread(groups_of, name)
        except TimeoutError as error:
            self.log.error(
                "Login of %s failed: PAM gave no answer within %g s", name, self.login_timeout
            )
            raise web.HTTPError(NO_ANSWER, PAM_SILENT) from error
        return None if groups is None else self.auth_model(name, groups)


def groups_of(name: str) -> tuple[str, ...] | None:
    """List the Unix groups of a user; None where the machine knows the user by another name."""
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        return None
    if account.pw_name != name:
        return None
    return tuple(_group_names(os.getgrouplist(name, account.pw_gid)))


def _group_names(gids: list[int]) -> list[str]:
    names = []
    for gid in gids:
        try:
            names.append(grp.getgrgid(gid).gr_name)
        except KeyError:
            continue  # a number without a name gives no rights
    return names
