"""A connection to one server of the directory: opened and encrypted, then asked.

All of it blocks, within the limits given: run it in a thread.
"""

import contextlib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ldap3 import BASE, DEREF_NEVER, NONE, SIMPLE, SUBTREE, SYNC, Connection, Server, Tls
from ldap3.core.exceptions import LDAPException

from dsportal.authentication.bind_answer import PASSWORD_POLICY, is_right
from dsportal.authentication.entry import Entry
from dsportal.authentication.errors import DirectoryError, LimitExceeded, Refused

# [MS-ADTS] 3.1.1.3.4.3: what every Active Directory says that it can do.
_ACTIVE_DIRECTORY = "1.2.840.113556.1.4.800"
# [MS-ADTS] 3.1.1.3.4.1.12: no references to other parts of the forest in what is found.
_DOMAIN_SCOPE = "1.2.840.113556.1.4.1339"
_REFERRAL = 10
# RFC 4511, appendix A: timeLimitExceeded, sizeLimitExceeded, adminLimitExceeded.
_LIMITS = frozenset({3, 4, 11})


@dataclass(frozen=True)
class LookupAccount:
    """The account that looks people up, where not everybody's entry can be told from the name."""

    dn: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class LdapAccess:
    """Connection settings. Whole seconds, because a socket's own time limit takes no others."""

    servers: tuple[str, ...]
    start_tls: bool
    ca_file: str
    connect_seconds: int
    receive_seconds: int
    next_server_seconds: float = 1.0
    minimum_tls: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2


class DirectoryConnection:
    """An open connection; ``is_active_directory`` is what the server said of itself."""

    def __init__(self, url: str, access: LdapAccess) -> None:
        """Connect, encrypt, and hear that somebody answers; raises what ldap3 raises."""
        self.url = url
        server = Server(
            url,
            get_info=NONE,
            connect_timeout=access.connect_seconds,
            tls=_CheckedTls(access.ca_file, access.minimum_tls),
        )
        self._connection = Connection(
            server,
            client_strategy=SYNC,
            # Else the password would go to whatever server an answer names.
            auto_referrals=False,
            check_names=False,
            receive_timeout=access.receive_seconds,
        )
        try:
            self._open(access.start_tls and not server.ssl)
            self.is_active_directory = _ACTIVE_DIRECTORY in self._capabilities()
        except BaseException:
            self.close()
            raise

    def _open(self, start_tls: bool) -> None:
        self._connection.open(read_server_info=False)
        if start_tls and not self._connection.start_tls(read_server_info=False):
            raise DirectoryError("StartTLS failed")

    def _capabilities(self) -> list[str]:
        """Ask what needs no login; any answer, a refusal too, shows that somebody is there."""
        self._connection.search(
            "", "(objectClass=*)", search_scope=BASE, attributes=["supportedCapabilities"]
        )
        entries = _entries(self._connection.response or ())
        return entries[0].texts("supportedCapabilities") if entries else []

    def bind(self, dn: str, password: str) -> bool:
        """Prove a password; False where the directory says it is wrong.

        The password goes as the very bytes that were typed, as other clients send it, and never
        empty. Raises Refused where the password is right and of no use.
        """
        if not password:
            return False
        connection = self._connection
        connection.user = dn
        connection.password = password.encode("utf-8", "surrogatepass")
        connection.authentication = SIMPLE
        # Not rebind(), which calls a silent server a wrong password.
        connection.bind(read_server_info=False, controls=[(PASSWORD_POLICY, False, None)])
        return is_right(dn, connection.result)

    def search(
        self, base: str, wanted: str, attributes: Sequence[str], *, only_base: bool = False
    ) -> list[Entry]:
        """Find entries; half an answer is none.

        Raises Refused where another server has more, LimitExceeded where this one has and does not
        tell it.
        """
        connection = self._connection
        connection.search(
            base,
            wanted,
            search_scope=BASE if only_base else SUBTREE,
            dereference_aliases=DEREF_NEVER,  # as nslcd and sssd do
            attributes=list(attributes),
            controls=[(_DOMAIN_SCOPE, False, None)] if self.is_active_directory else None,
        )
        result, response = connection.result, connection.response or ()
        elsewhere = [uri for part in response if "uri" in part for uri in part["uri"]]
        if result["result"] == _REFERRAL or elsewhere:
            places = ", ".join(elsewhere or result["referrals"] or ())
            raise Refused(f"the directory refers the search under {base} to {places}")
        if result["result"] != 0:
            told = f"{result['description']} {result['message']}".strip()
            kind = LimitExceeded if result["result"] in _LIMITS else DirectoryError
            raise kind(f"search under {base}: {told}")
        return _entries(response)

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(LDAPException, OSError):
            self._connection.strategy.close()
        # One that did not open is left to us.
        if self._connection.socket is not None:
            self._connection.socket.close()


class _CheckedTls(Tls):
    """TLS that checks the certificate and the name in it; ldap3's own checks nothing by default."""

    def __init__(self, ca_file: str, minimum: ssl.TLSVersion) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self._ca_file = ca_file or None
        self._minimum = minimum

    def wrap_socket(self, connection: Connection, do_handshake: bool = True) -> None:
        """Encrypt an open connection."""
        context = ssl.create_default_context(cafile=self._ca_file)
        context.minimum_version = self._minimum
        connection.socket = context.wrap_socket(
            connection.socket, server_hostname=connection.server.host
        )


def _entries(response: Sequence[Any]) -> list[Entry]:
    return [
        Entry(part["dn"], {name.lower(): values for name, values in part["raw_attributes"].items()})
        for part in response
        if part["type"] == "searchResEntry"
    ]
