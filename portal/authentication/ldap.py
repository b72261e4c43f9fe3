"""Logins against a directory, without ever holding up the hub."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from ldapauthenticator import LDAPAuthenticator
from ldapauthenticator.ldapauthenticator import TlsStrategy
from tornado import web
from traitlets import Int, List, TraitError, Unicode, default

from portal.authentication.admission import NO_ANSWER, GroupAdmission
from portal.authentication.directory import (
    Access,
    Account,
    Directory,
    DirectoryError,
    Layout,
    Reader,
)
from portal.authentication.names import shown, unix_name

# Options of LDAPAuthenticator that this class answers in its own way. One that a site set for its
# safety must not be passed over in silence.
_REPLACED = frozenset(
    {
        "attributes",
        "auth_state_attributes",
        "bind_dn_template",
        "group_attributes",
        "lookup_dn",
        "lookup_dn_search_filter",
        "lookup_dn_user_dn_attribute",
        "search_filter",
        "server_address",
        "server_port",
        "tls_kwargs",
        "use_lookup_dn_username",
        "use_ssl",
        "valid_username_regex",
    }
)


class DirectoryAuthenticator(GroupAdmission, LDAPAuthenticator):  # type: ignore[misc]  # no types
    """LDAPAuthenticator with several servers, time limits, threads, checked TLS and groups."""

    servers = List(
        Unicode(), help="The directory's servers, ldap:// or ldaps://; the first is asked first."
    ).tag(config=True)
    ca_file = Unicode(
        help="The authorities (PEM) that sign the servers' certificates. Empty: the system's."
    ).tag(config=True)
    group_search_base = Unicode(help="The branch of the directory with the groups.").tag(
        config=True
    )
    group_attribute = Unicode("cn", help="The attribute with a group's name.").tag(config=True)
    lookup_dn_search_password_file = Unicode(
        help="The file with the password of `lookup_dn_search_user`."
    ).tag(config=True)
    connect_timeout = Int(3, help="Seconds that one server has to accept a connection.").tag(
        config=True
    )
    receive_timeout = Int(5, help="Seconds that one server has for one answer.").tag(config=True)
    executor_threads = Int(
        16, help="Logins that can wait for the directory at the same time; others wait for them."
    ).tag(config=True)

    @default("user_attribute")
    def _default_user_attribute(self) -> str:
        return "uid"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._refuse_replaced_options()
        self._threads = ThreadPoolExecutor(self.executor_threads, "directory")
        self._directory = Directory(self._access(), self._layout(), self._reader(), self.log)

    async def authenticate(self, handler: Any, data: dict[str, str]) -> dict[str, Any] | None:
        """Say who it is that logs in; None where name and password do not belong together."""
        typed, password = data.get("username", ""), data.get("password", "")
        name = unix_name(typed)
        if name is None or not password:
            self.log.warning("Login of %s refused: no such name, or no password", shown(typed))
            return None
        account = await self._asked(name, password)
        return None if account is None else self.auth_model(account.name, account.groups)

    async def _asked(self, name: str, password: str) -> Account | None:
        """Ask in a thread, for a limited time; the loop goes on meanwhile."""
        deadline = time.monotonic() + self.login_timeout
        question = partial(self._directory.account, name, password, deadline)
        try:
            async with asyncio.timeout(self.login_timeout):
                return await asyncio.get_running_loop().run_in_executor(self._threads, question)
        except TimeoutError as error:
            cause = f"no answer within {self.login_timeout:g} s from {', '.join(self.servers)}"
            raise self._no_answer(name, cause) from error
        except DirectoryError as error:
            raise self._no_answer(name, str(error)) from error

    def _no_answer(self, name: str, cause: str) -> web.HTTPError:
        self.log.error("Login of %s failed, the directory does not answer: %s", name, cause)
        return web.HTTPError(NO_ANSWER, "The directory does not answer; try again in a minute.")

    def _refuse_replaced_options(self) -> None:
        for section in ("LDAPAuthenticator", "DirectoryAuthenticator"):
            if section in self.config and (found := _REPLACED & set(self.config[section])):
                names = ", ".join(f"c.{section}.{name}" for name in sorted(found))
                raise TraitError(f"{names}: not an option of DirectoryAuthenticator")

    def _access(self) -> Access:
        return Access(
            servers=tuple(self.servers),
            start_tls=self.tls_strategy != TlsStrategy.insecure,
            ca_file=self.ca_file,
            connect_seconds=self.connect_timeout,
            receive_seconds=self.receive_timeout,
        )

    def _layout(self) -> Layout:
        return Layout(
            user_base=self.user_search_base or "",
            user_attribute=self.user_attribute,
            group_base=self.group_search_base,
            group_attribute=self.group_attribute,
            group_filter=self.group_search_filter,
        )

    def _reader(self) -> Reader | None:
        if not self.lookup_dn_search_user:
            return None
        password = self.lookup_dn_search_password or ""
        if self.lookup_dn_search_password_file:
            password = Path(self.lookup_dn_search_password_file).read_text("utf-8").rstrip("\n")
        return Reader(self.lookup_dn_search_user, password)
