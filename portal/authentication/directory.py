"""One conversation with an LDAP directory: a name and a password in, an account out.

All of it blocks, within the limits given: run it in a thread. Words: a *server* is one address of
the directory; an *entry* is what it holds on a person; an *account* is what we made of it.
"""

import contextlib
import logging
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ldap3 import BASE, NONE, SIMPLE, SUBTREE, SYNC, Connection, Server, Tls
from ldap3.core.exceptions import LDAPException
from ldap3.utils.conv import escape_filter_chars
from ldap3.utils.dn import escape_rdn, parse_dn

from portal.authentication.names import shown

# For how long a server that failed is asked last.
_BAD_SERVER_SECONDS = 60.0

# RFC 4511, appendix A: what a directory answers to a bind with a wrong name or password. Besides
# 49 invalidCredentials: 19 constraintViolation (locked after too many tries), 32 noSuchObject,
# 34 invalidDNSyntax, 48 inappropriateAuthentication (no password set), 50 insufficientAccessRights,
# 53 unwillingToPerform.
_REFUSALS = frozenset({19, 32, 34, 48, 49, 50, 53})


class DirectoryError(Exception):
    """No server of the directory gave an answer; says which and why, for the log."""


@dataclass(frozen=True)
class Account:
    """A person whose password was right."""

    name: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """Where the directory keeps people and groups, and what it calls them.

    ``group_filter`` finds a person's groups from ``{userdn}`` and ``{uid}``.
    """

    user_base: str
    user_attribute: str
    group_base: str
    group_attribute: str
    group_filter: str


@dataclass(frozen=True)
class Reader:
    """The account that looks people up where their entries are not all directly under one base."""

    dn: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Access:
    """How servers are reached: whole seconds, because a socket's own time limit takes no others."""

    servers: tuple[str, ...]
    start_tls: bool
    ca_file: str
    connect_seconds: int
    receive_seconds: int


@dataclass(frozen=True)
class _Entry:
    dn: str
    attributes: Mapping[str, Sequence[bytes]]

    def texts(self, attribute: str) -> list[str]:
        return [value.decode("utf-8", "replace") for value in self.attributes.get(attribute, ())]

    def own_name(self, attribute: str) -> str | None:
        """Give the one name among several values: the one that the entry's own DN has."""
        values = self.texts(attribute)
        if len(values) == 1:
            return values[0]
        in_dn = _first_of_dn(self.dn, attribute)
        return in_dn if in_dn in values else None


class Directory:
    """The directory behind one or more servers that hold the same."""

    def __init__(
        self, access: Access, layout: Layout, reader: Reader | None, log: logging.Logger
    ) -> None:
        self._access = access
        self._layout = layout
        self._reader = reader
        self._log = log
        self._failed_at: dict[str, float] = {}

    def account(self, name: str, password: str, deadline: float) -> Account | None:
        """Ask for an account; None for a wrong name or password.

        A server that fails is followed by the next, until the deadline (as ``time.monotonic``
        tells time). Raises DirectoryError where none answers.
        """
        failures = []
        for url in self._servers():
            if time.monotonic() >= deadline:
                failures.append("no time left for the others")
                break
            try:
                account = self._ask(url, name, password)
            except Exception as error:  # noqa: BLE001  # what ldap3 makes of a bad answer is open
                self._failed_at[url] = time.monotonic()
                failures.append(f"{url}: {type(error).__name__}: {error}")
                self._log.warning("Directory server %s", failures[-1])
            else:
                self._failed_at.pop(url, None)
                return account
        raise DirectoryError("; ".join(failures))

    def _servers(self) -> list[str]:
        """List the servers in the order of the settings, those that failed lately at the end."""
        since = time.monotonic() - _BAD_SERVER_SECONDS
        return sorted(
            self._access.servers, key=lambda url: self._failed_at.get(url, float("-inf")) > since
        )

    def _ask(self, url: str, name: str, password: str) -> Account | None:
        with self._connection(url) as connection:
            entry = (
                self._looked_up(connection, self._reader, name, password)
                if self._reader
                else self._logged_in(connection, name, password)
            )
            if entry is None:
                return None
            own = entry.own_name(self._layout.user_attribute)
            if own != name:
                self._log.warning(
                    "Login of %s refused: the directory calls %s %s",
                    shown(name),
                    entry.dn,
                    shown(own or "nothing in particular"),
                )
                return None
            return Account(name, tuple(sorted(self._groups(connection, entry, name))))

    def _logged_in(self, connection: Connection, name: str, password: str) -> _Entry | None:
        """Bind as the person, then read their entry as they may."""
        layout = self._layout
        dn = f"{layout.user_attribute}={escape_rdn(name)},{layout.user_base}"
        if not _bind(connection, dn, password):
            return None
        found = self._search(connection, dn, "(objectClass=*)", self._person(), scope=BASE)
        return found[0] if found else None

    def _looked_up(
        self, connection: Connection, reader: Reader, name: str, password: str
    ) -> _Entry | None:
        """Find the person's entry as the reader, then bind as the person."""
        if not _bind(connection, reader.dn, reader.password):
            raise DirectoryError(f"the password of {reader.dn} is not accepted")
        layout = self._layout
        wanted = f"({layout.user_attribute}={escape_filter_chars(name)})"
        found = self._search(connection, layout.user_base, wanted, self._person())
        if len(found) > 1:
            self._log.warning("Login of %s refused: %d entries", shown(name), len(found))
        if len(found) != 1 or not _bind(connection, found[0].dn, password):
            return None
        return found[0]

    def _person(self) -> list[str]:
        return [self._layout.user_attribute, "gidNumber", "memberOf"]

    def _groups(self, connection: Connection, entry: _Entry, name: str) -> set[str]:
        """Collect the groups that list the person, the primary group and those of memberOf."""
        layout = self._layout
        wanted = layout.group_filter.format(
            userdn=escape_filter_chars(entry.dn), uid=escape_filter_chars(name)
        )
        primary = "".join(
            f"(&(objectClass=posixGroup)(gidNumber={gid}))"
            for gid in entry.texts("gidNumber")
            if gid.isdigit()
        )
        found = self._search(
            connection, layout.group_base, f"(|{wanted}{primary})", [layout.group_attribute]
        )
        listed = (group.own_name(layout.group_attribute) for group in found)
        told = (_name_under(dn, layout) for dn in entry.texts("memberOf"))
        return {group for group in (*listed, *told) if group}

    def _search(
        self,
        connection: Connection,
        base: str,
        wanted: str,
        attributes: list[str],
        scope: Any = SUBTREE,
    ) -> list[_Entry]:
        connection.search(base, wanted, search_scope=scope, attributes=attributes)
        if connection.result["result"] != 0:
            # Half a list of groups is no answer either.
            raise DirectoryError(f"search under {base}: {_told(connection)}")
        return [
            _Entry(entry["dn"], entry["raw_attributes"])
            for entry in connection.response or ()
            if entry["type"] == "searchResEntry"
        ]

    @contextlib.contextmanager
    def _connection(self, url: str) -> Iterator[Connection]:
        access = self._access
        server = Server(
            url,
            get_info=NONE,
            connect_timeout=access.connect_seconds,
            tls=_CheckedTls(access.ca_file),
        )
        connection = Connection(
            server,
            client_strategy=SYNC,
            # Else the password would go to whatever server an answer names.
            auto_referrals=False,
            check_names=False,
            receive_timeout=access.receive_seconds,
        )
        try:
            connection.open(read_server_info=False)
            if access.start_tls and not server.ssl:
                connection.start_tls(read_server_info=False)
            yield connection
        finally:
            with contextlib.suppress(LDAPException, OSError):
                connection.strategy.close()
            # One that did not open is left to us.
            if connection.socket is not None:
                connection.socket.close()


class _CheckedTls(Tls):
    """TLS that checks the certificate and the name in it; ldap3's own checks nothing by default."""

    def __init__(self, ca_file: str) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self._ca_file = ca_file or None

    def wrap_socket(self, connection: Connection, do_handshake: bool = True) -> None:
        """Encrypt an open connection."""
        context = ssl.create_default_context(cafile=self._ca_file)
        connection.socket = context.wrap_socket(
            connection.socket, server_hostname=connection.server.host
        )


def _bind(connection: Connection, dn: str, password: str) -> bool:
    """Prove a password; False where the directory says it is wrong.

    The password goes as the very bytes that were typed, as other clients send it, and never empty.
    """
    if not password:
        return False
    connection.user = dn
    connection.password = password.encode("utf-8", "surrogatepass")
    connection.authentication = SIMPLE
    # Not rebind(), which calls a silent server a wrong password.
    connection.bind(read_server_info=False)
    code = connection.result["result"]
    if code != 0 and code not in _REFUSALS:
        raise DirectoryError(f"bind as {dn}: {_told(connection)}")
    return bool(code == 0)


def _told(connection: Connection) -> str:
    result = connection.result
    return f"{result['description']} {result['message']}".strip()


def _first_of_dn(dn: str, attribute: str) -> str | None:
    """Give the value of a DN's first part, None where that is not the attribute."""
    name, value, _ = parse_dn(dn)[0]
    return value if name.lower() == attribute.lower() else None


def _name_under(dn: str, layout: Layout) -> str | None:
    """Give the group's name from a DN such as cn=staff,ou=groups,... below the groups' base."""
    parts = [(name.lower(), value.lower()) for name, value, _ in parse_dn(dn)]
    base = [(name.lower(), value.lower()) for name, value, _ in parse_dn(layout.group_base)]
    below = len(parts) > len(base) and parts[-len(base) :] == base
    return _first_of_dn(dn, layout.group_attribute) if below else None
