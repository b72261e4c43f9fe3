"""The PAM authenticator: logins against the machine's accounts, for a hub that is not root.

PAM's pam_unix lets a program check the password of somebody else only where it can read
``/etc/shadow``: the hub's user needs to be in group ``shadow``.
"""

import asyncio
from typing import Any

import pamela
from jupyterhub.auth import PAMAuthenticator
from tornado import web
from traitlets import default

from dsportal.authentication.admission import NO_ANSWER, GroupAdmission
from dsportal.authentication.errors import Refused
from dsportal.authentication.names import shown, unix_name
from dsportal.authentication.unix_account import refuse_unfit
from dsportal.authentication.words import PAM_SILENT
from jupyterhub_gpu_slurm.options.unix_groups import known_groups_of

_CLOSED = {6, 7, 12, 13}
"""The answers of pam_acct_mgmt(3) that are a no: PERM_DENIED, AUTH_ERR, NEW_AUTHTOK_REQD and
ACCT_EXPIRED. USER_UNKNOWN also comes from a directory that is silent."""


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
                # First, or how long the answer takes would tell whether root's password is right.
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self.executor, refuse_unfit, name, self.minimum_uid)
                asked = {"username": name, "password": password}
                if not await super().authenticate(handler, asked):
                    return None
                groups = await loop.run_in_executor(self.executor, known_groups_of, name)
        except (Refused, KeyError) as refusal:
            self.log.warning("Login of %s refused: %s", shown(name), refusal)
            return None
        except TimeoutError as error:
            self.log.error(
                "Login of %s failed: PAM gave no answer within %g s", name, self.login_timeout
            )
            raise web.HTTPError(NO_ANSWER, PAM_SILENT) from error
        return self.auth_model(name, groups)

    async def refresh_user(self, user: Any, handler: Any = None) -> bool | dict[str, Any]:
        """Look again at the account of somebody who is logged in; False ends their login.

        JupyterHub asks every ``auth_refresh_age`` seconds that somebody is active, and before each
        start. A machine that gives no answer, or does not know the user, changes nothing: it may be
        its directory that is silent, and nothing starts for somebody unknown.
        """
        self.may_refuse(handler)
        try:
            groups = await self._looks.get(user.name)
        except Refused as refusal:
            self.log.warning("%s is not let in any more: %s", user.name, refusal.reason)
            return False
        except (TimeoutError, KeyError, pamela.PAMError) as error:
            why = str(error) or f"PAM gave no answer within {self.login_timeout:g} s"
            self.log.warning("The account of %s stays as it is: %s", user.name, why)
            return True
        return self.auth_model(user.name, groups) if self.is_let_in(user.name, groups) else False

    async def _looked_up(self, name: str) -> list[str]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self.login_timeout):
            return await loop.run_in_executor(self._refresh_threads, self._look_up, name)

    def _look_up(self, name: str) -> list[str]:
        if self.check_account:
            try:
                pamela.check_account(name, service=self.service, encoding=self.encoding)
            except pamela.PAMError as error:
                if error.errno not in _CLOSED:
                    raise
                raise Refused(f"the account is closed: {error}") from error
        refuse_unfit(name, self.minimum_uid)
        return known_groups_of(name)
