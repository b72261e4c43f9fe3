"""Authorization by groups: who may log in and who is an admin, with any authenticator."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from jupyterhub.auth import Authenticator
from tornado import web
from traitlets import Float, Int, Set, Unicode, default

from dsportal.authentication.groups import standing
from dsportal.authentication.names import unix_name, without_realm
from dsportal.authentication.throttle import LoginThrottle
from dsportal.authentication.words import NOT_ALLOWED
from jupyterhub_gpu_slurm.shared_answer import SharedAnswers

NO_ANSWER = 503
LONGEST_PASSWORD = 1024
"""Characters. slapd hangs up on some 250,000 of a stranger's, which would look as if it did not
answer: an attempt that costs nothing."""
_REFRESH_THREADS = 4
_MOST_REFRESHED = 10_000


class GroupAdmission(Authenticator):  # type: ignore[misc]  # JupyterHub has no types
    """Base of the portal's authenticators: groups decide who may log in and who is an admin.

    Rights are looked up at each login and not remembered: who has left a group loses what it gave.
    """

    allowed_groups = Set(Unicode(), help="Names of the groups whose members may log in.").tag(
        config=True, allow_config=True
    )
    admin_groups = Set(
        Unicode(),
        help="Names of the groups whose members are admins; they may log in too.",
    ).tag(config=True, allow_config=True)
    contact = Unicode(
        "the administrators of the portal",
        help="The people to ask for access; users who may not log in are referred to them.",
    ).tag(config=True)
    minimum_uid = Int(
        1000, help="The lowest uid that may log in; lower ones are the system's."
    ).tag(config=True)
    login_timeout = Float(20.0, help="Seconds that one login may take in total.").tag(config=True)

    @default("manage_groups")
    def _default_manage_groups(self) -> bool:
        return True

    # Who is in no group any more, or closed, starts nothing, by whatever way.
    @default("refresh_pre_spawn")
    def _default_refresh_pre_spawn(self) -> bool:
        return True

    @default("auth_refresh_strict")
    def _default_auth_refresh_strict(self) -> bool:
        return True

    @cached_property
    def _refresh_threads(self) -> ThreadPoolExecutor:
        """Those of looks at accounts: wrong passwords hold the threads of logins."""
        return ThreadPoolExecutor(_REFRESH_THREADS, "account-refresh")

    @cached_property
    def _looks(self) -> SharedAnswers[str, Any]:
        """One look for all who wait for the same account: it cannot crowd out its own refusal."""
        return SharedAnswers(self._looked_up, 0.0, most=_MOST_REFRESHED)

    async def _looked_up(self, name: str) -> Any:
        """Look at the account of somebody who is logged in."""
        raise NotImplementedError

    async def get_authenticated_user(
        self, handler: Any, data: dict[str, str]
    ) -> dict[str, Any] | None:
        """Ask for the password's sake only as often as the throttle allows.

        JupyterHub asks to leave this method alone; it is the one place that every login passes,
        with whatever authenticator.
        """
        if handler is None:  # a program's question, with no browser behind it
            found: dict[str, Any] | None = await super().get_authenticated_user(handler, data)
            return found
        if not _is_form(data):
            # Of the API, which takes any JSON; JupyterHub would log what fails at it, for anybody.
            raise web.HTTPError(
                400,
                "A login has a username and a password, both of them text, the password of at most "
                f"{LONGEST_PASSWORD} characters.",
            )
        # JupyterHub's page of a refused login reads it, too.
        typed = data.setdefault("username", "")
        name = unix_name(without_realm(typed, getattr(self, "realm", "")))
        attempt = await self._throttle.attempt(handler, typed, name or "")
        return await attempt.answer(super().get_authenticated_user(handler, data))

    @cached_property
    def _throttle(self) -> LoginThrottle:
        return LoginThrottle(
            self.log, frozenset(getattr(self.parent, "trusted_downstream_ips", ()))
        )

    def auth_model(self, name: str, groups: Iterable[str]) -> dict[str, Any]:
        """Give what JupyterHub keeps of a login."""
        found = standing(groups, allowed=self.allowed_groups, admin=self.admin_groups)
        return {
            "name": name,
            # True or False, never None, which would leave an admin of yesterday one.
            "admin": found.admin or name in self.admin_users,
            "groups": list(found.groups),
        }

    async def check_allowed(
        self, username: str, authentication: dict[str, Any] | None = None
    ) -> bool:
        """Let in whom the groups or ``allowed_users`` let in; tell others whom to ask."""
        if self.is_let_in(username, (authentication or {}).get("groups") or ()):
            return True
        raise web.HTTPError(403, NOT_ALLOWED.format(contact=self.contact))

    @staticmethod
    def may_refuse(handler: Any) -> None:
        """Let ``refresh_user`` answer False to a request.

        JupyterHub 6.1.1 reads an attribute then that it sets with a token only.
        """
        if handler is not None and not hasattr(handler, "_token_authenticated"):
            handler._token_authenticated = False

    def is_let_in(self, name: str, groups: Iterable[str]) -> bool:
        """Whether the groups or ``allowed_users`` let somebody in; the log has why not."""
        found = standing(groups, allowed=self.allowed_groups, admin=self.admin_groups)
        if found.allowed or name in self.allowed_users | self.admin_users:
            return True
        self.log.warning(
            "Login of %s refused: in none of the groups %s (is in: %s)",
            name,
            ", ".join(sorted(self.allowed_groups | self.admin_groups)),
            ", ".join(found.groups) or "none",
        )
        return False


def _is_form(data: object) -> bool:
    if not (isinstance(data, dict) and all(isinstance(value, str) for value in data.values())):
        return False
    return len(data.get("password", "")) <= LONGEST_PASSWORD
