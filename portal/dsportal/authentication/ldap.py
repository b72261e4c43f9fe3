"""The LDAP authenticator: logins against a directory, off the hub's event loop."""

import asyncio
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ldap3.core.exceptions import LDAPException
from ldap3.operation.search import parse_filter
from ldapauthenticator import LDAPAuthenticator
from ldapauthenticator.ldapauthenticator import TlsStrategy
from tornado import web
from traitlets import Bool, Enum, Float, Int, List, TraitError, Unicode, default

from dsportal.authentication.admission import NO_ANSWER, GroupAdmission
from dsportal.authentication.connection import LdapAccess, LookupAccount
from dsportal.authentication.directory import Directory, DirectoryAccount
from dsportal.authentication.errors import DirectoryError, LimitExceeded, Locked, Refused
from dsportal.authentication.layout import SCHEMAS, Layout, default_realm
from dsportal.authentication.names import shown, unix_name, without_realm
from dsportal.authentication.throttle import TOO_MANY
from dsportal.authentication.unix_account import refuse_unfit
from dsportal.authentication.words import DIRECTORY_SILENT

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
_TLS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class DirectoryAuthenticator(GroupAdmission, LDAPAuthenticator):  # type: ignore[misc]  # no types
    """LDAPAuthenticator with several servers, time limits, threads, checked TLS and groups."""

    servers = List(
        Unicode(), help="The directory's servers, ldap:// or ldaps://; the first is asked first."
    ).tag(config=True)
    ca_file = Unicode(
        help="The authorities (PEM) that sign the servers' certificates. Empty: the system's."
    ).tag(config=True)
    minimum_tls = Enum(list(_TLS), "1.2", help="The oldest version of TLS that is spoken.").tag(
        config=True
    )
    accept_unencrypted = Bool(
        False, help="Whether passwords may go to other hosts unencrypted without a warning."
    ).tag(config=True)
    kind = Enum(
        list(SCHEMAS), "posix", help="Whose names of attributes and filters are the defaults."
    ).tag(config=True)
    user_filter = Unicode(help="What an entry of a user must be, besides its name.").tag(
        config=True
    )
    bind_as = Unicode(
        help="What a user's password is tried with where nobody looks users up, from {name}."
    ).tag(config=True)
    realm = Unicode(help="What may follow a name that is typed, after an @.").tag(config=True)
    group_search_base = Unicode(help="The branch of the directory with the groups.").tag(
        config=True
    )
    group_attribute = Unicode(help="The attribute with a group's name.").tag(config=True)
    nested_groups = Bool(True, help="Whether the groups of a user's groups count too.").tag(
        config=True
    )
    lookup_dn_search_password_file = Unicode(
        help="The file with the password of `lookup_dn_search_user`."
    ).tag(config=True)
    connect_timeout = Int(3, help="Seconds that one server has to accept a connection.").tag(
        config=True
    )
    receive_timeout = Int(5, help="Seconds that one server has for one answer.").tag(config=True)
    next_server_seconds = Float(
        1.0, help="Seconds that a server may be silent until the next one is asked as well."
    ).tag(config=True)
    refresh_timeout = Float(
        5.0, help="Seconds that a look at the account of somebody logged in may take."
    ).tag(config=True)
    refresh_pause = Float(
        30.0, help="Seconds without such looks after one that the directory did not answer."
    ).tag(config=True)
    executor_threads = Int(
        16, help="Logins that can wait for the directory at the same time; others wait for them."
    ).tag(config=True)

    @default("user_attribute")
    def _default_user_attribute(self) -> str:
        return SCHEMAS[self.kind].user_attribute

    @default("user_filter")
    def _default_user_filter(self) -> str:
        return SCHEMAS[self.kind].user_filter

    @default("group_attribute")
    def _default_group_attribute(self) -> str:
        return SCHEMAS[self.kind].group_attribute

    @default("group_search_filter")
    def _default_group_search_filter(self) -> str:
        return SCHEMAS[self.kind].group_filter

    @default("realm")
    def _default_realm(self) -> str:
        return default_realm(self.kind, self.user_search_base or "")

    @default("bind_as")
    def _default_bind_as(self) -> str:
        return f"{{name}}@{self.realm}" if self.kind == "active_directory" else ""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._refuse_replaced_options()
        self._refuse_broken_filters()
        self._warn_of_open_passwords()
        self._threads = ThreadPoolExecutor(self.executor_threads, "directory")
        self._no_refresh_until = float("-inf")
        self._lookup_account = self._lookup_account_set()
        self._directory = Directory(self._access(), self._layout(), self._lookup_account, self.log)

    async def authenticate(self, handler: Any, data: dict[str, str]) -> dict[str, Any] | None:
        """Say who it is that logs in; None where name and password do not belong together."""
        typed, password = data.get("username", ""), data.get("password", "")
        name = unix_name(without_realm(typed, self.realm))
        if name is None or not password:
            self.log.warning("Login of %s refused: no such name, or no password", shown(typed))
            return None
        try:
            account = await self._asked(
                partial(self._log_in, name, password), self._threads, self.login_timeout
            )
        except Refused as refusal:
            self.log.warning("Login of %s refused: %s", shown(name), refusal.reason)
            if not refusal.words:
                return None
            status = TOO_MANY if isinstance(refusal, Locked) else 403
            raise web.HTTPError(status, refusal.words.format(contact=self.contact)) from refusal
        except DirectoryError as error:
            self.log.error("Login of %s failed, the directory does not answer: %s", name, error)
            raise web.HTTPError(NO_ANSWER, DIRECTORY_SILENT) from error
        return None if account is None else self.auth_model(account.name, account.groups)

    async def refresh_user(self, user: Any, handler: Any = None) -> bool | dict[str, Any]:
        """Look again at the account of somebody who is logged in; False ends their login.

        JupyterHub asks every ``auth_refresh_age`` seconds that somebody is active, and before each
        start. A directory that does not answer changes nothing.
        """
        if self._lookup_account is None or time.monotonic() < self._no_refresh_until:
            return True
        self.may_refuse(handler)
        try:
            account = await self._looks.get(user.name)
        except Refused as refusal:
            self.log.warning("%s is not let in any more: %s", user.name, refusal.reason)
            return False
        except DirectoryError as error:
            # One account with more groups than the directory lists is nobody else's affair.
            if not isinstance(error, LimitExceeded):
                self._no_refresh_until = time.monotonic() + self.refresh_pause
            self.log.warning("The account of %s stays as it is: %s", user.name, error)
            return True
        model = self.auth_model(account.name, account.groups)
        return model if self.is_let_in(account.name, account.groups) else False

    async def _looked_up(self, name: str) -> DirectoryAccount:
        found: DirectoryAccount = await self._asked(
            partial(self._directory.look_up, name), self._refresh_threads, self.refresh_timeout
        )
        return found

    def _log_in(self, name: str, password: str, deadline: float) -> DirectoryAccount | None:
        account = self._directory.log_in(name, password, deadline)
        if account is not None:
            refuse_unfit(account.name, self.minimum_uid)
        return account

    async def _asked(
        self,
        question: Callable[[float], DirectoryAccount | None],
        threads: ThreadPoolExecutor,
        seconds: float,
    ) -> Any:
        """Ask in a thread, for a limited time; the loop goes on meanwhile."""
        deadline = time.monotonic() + seconds
        try:
            async with asyncio.timeout(seconds):
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(threads, question, deadline)
        except TimeoutError as error:
            servers = ", ".join(self.servers)
            raise DirectoryError(f"no answer within {seconds:g} s from {servers}") from error

    def _refuse_replaced_options(self) -> None:
        for section in ("LDAPAuthenticator", "DirectoryAuthenticator"):
            if section in self.config and (found := _REPLACED & set(self.config[section])):
                names = ", ".join(f"c.{section}.{name}" for name in sorted(found))
                raise TraitError(f"{names}: not an option of DirectoryAuthenticator")

    def _refuse_broken_filters(self) -> None:
        for text in (self.user_filter, self.group_search_filter):
            try:
                filled = text.format(userdn="x", uid="x")
                parse_filter(filled, None, False, False, None, False)  # type: ignore[no-untyped-call]
            except (LDAPException, KeyError, ValueError, IndexError) as error:
                raise TraitError(f"{text}: not a filter of a directory ({error})") from error

    def _warn_of_open_passwords(self) -> None:
        if self.accept_unencrypted or self.tls_strategy != TlsStrategy.insecure:
            return
        for url in self.servers:
            if url.startswith("ldap://") and not _is_loopback(urlsplit(url).hostname or ""):
                self.log.warning(
                    "PASSWORDS GO UNENCRYPTED to %s: set start_tls or use ldaps://",
                    url,
                )

    def _access(self) -> LdapAccess:
        return LdapAccess(
            servers=tuple(self.servers),
            start_tls=self.tls_strategy != TlsStrategy.insecure,
            ca_file=self.ca_file,
            connect_seconds=self.connect_timeout,
            receive_seconds=self.receive_timeout,
            next_server_seconds=self.next_server_seconds,
            minimum_tls=_TLS[self.minimum_tls],
        )

    def _layout(self) -> Layout:
        return Layout(
            kind=self.kind,
            user_base=self.user_search_base or "",
            user_attribute=self.user_attribute,
            user_filter=self.user_filter,
            group_base=self.group_search_base,
            group_attribute=self.group_attribute,
            group_filter=self.group_search_filter,
            nested_groups=self.nested_groups,
            bind_as=self.bind_as,
        )

    def _lookup_account_set(self) -> LookupAccount | None:
        if not self.lookup_dn_search_user:
            return None
        password = self.lookup_dn_search_password or ""
        if self.lookup_dn_search_password_file:
            password = Path(self.lookup_dn_search_password_file).read_text("utf-8").rstrip("\n")
        return LookupAccount(self.lookup_dn_search_user, password)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
