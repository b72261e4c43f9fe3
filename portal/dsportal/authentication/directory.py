"""The LDAP client: a name and a password in, an account out.

All of it blocks, within the limits given: run it in a thread. Words: a *server* is one address of
the directory; an *entry* is what it holds on a person; an *account* is what we made of it.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from ldap3.utils.conv import escape_filter_chars
from ldap3.utils.dn import escape_rdn

from dsportal.authentication import membership, validity
from dsportal.authentication.connection import DirectoryConnection, LdapAccess, LookupAccount
from dsportal.authentication.entry import Entry
from dsportal.authentication.errors import DirectoryError, Refused
from dsportal.authentication.layout import Layout
from dsportal.authentication.membership import Membership
from dsportal.authentication.names import shown, unix_name
from dsportal.authentication.servers import Servers
from dsportal.authentication.words import CLOSED, MUST_CHANGE


@dataclass(frozen=True)
class DirectoryAccount:
    """A person by their one Unix name, and the names of their groups."""

    name: str
    groups: tuple[str, ...]


class Directory:
    """The directory behind one or more servers that hold the same."""

    def __init__(
        self,
        access: LdapAccess,
        layout: Layout,
        lookup_account: LookupAccount | None,
        log: logging.Logger,
    ) -> None:
        self._servers = Servers(access, log)
        self._layout = layout
        self._lookup_account = lookup_account
        self._membership = Membership(layout, log)

    def log_in(self, name: str, password: str, deadline: float) -> DirectoryAccount | None:
        """Ask for an account; None for a wrong name or password.

        Raises Refused for a clear no, DirectoryError where no server answers until the deadline.
        """
        return self._servers.ask(partial(self._log_in, name, password), deadline)

    def look_up(self, name: str, deadline: float) -> DirectoryAccount:
        """Ask how an account is now, with the lookup account; raises as ``log_in``."""
        return self._servers.ask(partial(self._look_up, name), deadline)

    def _log_in(
        self, name: str, password: str, connection: DirectoryConnection
    ) -> DirectoryAccount | None:
        entry = self._found_and_bound(connection, name, password)
        if entry is None:
            return None
        own_name = self._own_name(entry, name)
        self._refuse_closed(entry)
        if validity.must_change_password(entry):
            raise Refused("the password must be changed", MUST_CHANGE)
        if self._lookup_account:
            # Who must not see groups may log in all the same.
            self._bind_as_lookup_account(connection)
        return DirectoryAccount(name, self._membership.of(connection, entry, own_name))

    def _look_up(self, name: str, connection: DirectoryConnection) -> DirectoryAccount:
        self._bind_as_lookup_account(connection)
        entry = self._found(connection, name)
        if entry is None:
            raise Refused(f"no entry under {self._layout.user_base}")
        own_name = self._own_name(entry, name)
        self._refuse_closed(entry)
        return DirectoryAccount(name, self._membership.of(connection, entry, own_name))

    def _found_and_bound(
        self, connection: DirectoryConnection, name: str, password: str
    ) -> Entry | None:
        if self._lookup_account:
            self._bind_as_lookup_account(connection)
        elif self._layout.bind_as:
            if not connection.bind(self._layout.bind_as.format(name=name), password):
                return None
        else:
            return self._bound_by_name(connection, name, password)
        entry = self._found(connection, name)
        # Also for who has bound by another kind of name, which may be somebody else's: user A can
        # have A's userPrincipalName say B. The password is right when it is the entry's.
        return entry if entry is not None and connection.bind(entry.dn, password) else None

    def _bound_by_name(
        self, connection: DirectoryConnection, name: str, password: str
    ) -> Entry | None:
        """Bind as the person whose DN follows from the name, then read the entry as they may."""
        layout = self._layout
        dn = f"{layout.user_attribute}={escape_rdn(name)},{layout.user_base}"
        if not connection.bind(dn, password):
            return None
        found = connection.search(dn, layout.user_filter, self._wanted(), only_base=True)
        return found[0] if found else None

    def _found(self, connection: DirectoryConnection, name: str) -> Entry | None:
        layout = self._layout
        named = f"({layout.user_attribute}={escape_filter_chars(name)})"
        found = connection.search(
            layout.user_base, f"(&{layout.user_filter}{named})", self._wanted()
        )
        if len(found) > 1:
            raise Refused(f"{len(found)} entries: {', '.join(entry.dn for entry in found)}")
        return found[0] if found else None

    def _bind_as_lookup_account(self, connection: DirectoryConnection) -> None:
        if self._lookup_account is None:
            raise DirectoryError("no account to look users up with")
        try:
            if connection.bind(self._lookup_account.dn, self._lookup_account.password):
                return
        except Refused as refusal:
            raise DirectoryError(f"{self._lookup_account.dn}: {refusal.reason}") from refusal
        raise DirectoryError(f"the password of {self._lookup_account.dn} is not accepted")

    def _own_name(self, entry: Entry, name: str) -> str:
        """Give the entry's name in its own spelling; raises Refused where it stands for another."""
        own = entry.own_name(self._layout.user_attribute)
        if own is None or unix_name(own) != name:
            called = shown(own or "nothing in particular")
            raise Refused(f"the directory calls {entry.dn} {called}")
        return own

    def _refuse_closed(self, entry: Entry) -> None:
        if (why := validity.why_closed(entry, datetime.now(UTC))) is not None:
            raise Refused(f"the account is closed: {why}", CLOSED)

    def _wanted(self) -> list[str]:
        return [self._layout.user_attribute, *membership.ATTRIBUTES, *validity.ATTRIBUTES]
