"""Checks of the directory's servers, as the hub asks them, and of the machine's name service."""

import grp
import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from dsportal.doctor.expected import ExpectedDirectory
from dsportal.doctor.finding import Finding, failed, ok, warning, worst
from dsportal.doctor.judgement import days, ldap

_SECONDS = 5.0
_LONGEST_ANSWER = 65536


def server(url: str, directory: ExpectedDirectory) -> Finding:
    """Connect, encrypt and bind, with one server."""
    place = urlsplit(url)
    is_ldaps = place.scheme == "ldaps"
    host, port = place.hostname or "", place.port or (636 if is_ldaps else 389)
    try:
        with socket.create_connection((host, port), timeout=_SECONDS) as plain:
            if not (is_ldaps or directory.start_tls):
                return worst([_in_the_clear(host), _bound(plain, directory)])
            if not is_ldaps:
                _start_tls(plain)
            return _over_tls(plain, host, directory)
    except ssl.SSLError as error:
        return failed(f"TLS: {_reason(error)}", _TLS_STEP)
    except (OSError, ldap.MessageError) as error:
        return failed(f"{error}", "start the directory there, or take it out of the settings")


_TLS_STEP = "compare the server's certificate (name, dates, issuer) with ca_file in portal.toml"


def _reason(error: ssl.SSLError) -> str:
    return getattr(error, "verify_message", "") or error.reason or str(error)


def _in_the_clear(host: str) -> Finding:
    if host in {"127.0.0.1", "::1", "localhost"}:
        return ok("not encrypted, and stays on this machine")
    return warning("passwords go over the network in the clear", "use ldaps:// or start_tls")


def _over_tls(plain: socket.socket, host: str, directory: ExpectedDirectory) -> Finding:
    context = ssl.create_default_context(cafile=directory.ca_file or None)
    with context.wrap_socket(plain, server_hostname=host) as safe:
        until = str((safe.getpeercert() or {})["notAfter"])
        ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(until), UTC)
        left = days.judge(ends, datetime.now(UTC), "renew the directory's certificate")
        return worst([left, _bound(safe, directory)])


def _start_tls(plain: socket.socket) -> None:
    if code := _asked(plain, ldap.START_TLS):
        raise ldap.MessageError(f"StartTLS is refused ({code}): set it up there, or use ldaps://")


def _bound(connection: socket.socket, directory: ExpectedDirectory) -> Finding:
    password = ""
    if directory.bind_password_file:
        password = Path(directory.bind_password_file).read_text(encoding="utf-8").rstrip("\n")
    code = _asked(connection, ldap.bind(directory.bind_dn, password))
    who = directory.bind_dn or "an anonymous bind"
    # Without an account of its own the portal binds as who logs in; that it answers is enough.
    if code == 0 or not directory.bind_dn:
        return ok(f"answers {who}")
    words = ldap.RESULTS.get(code, f"answers with result {code}")
    return failed(f"{words}: {who}", "correct bind_dn and the file with its password")


def _asked(connection: socket.socket, message: bytes) -> int:
    connection.sendall(message)
    answer = b""
    while (size := ldap.size_of(answer)) is None or len(answer) < size:
        part = connection.recv(4096)
        if not part or (size or 0) > _LONGEST_ANSWER:
            raise ldap.MessageError("the answer is cut off")
        answer += part
    return ldap.result(answer)


def group(name: str) -> Finding:
    """Ask the machine's name service for a group of the portal's users."""
    try:
        found = grp.getgrnam(name)
    except KeyError:
        step = f"start nslcd or sssd, and try `getent group {name}`"
        return failed("the name service does not know it", step)
    members = "1 member" if len(found.gr_mem) == 1 else f"{len(found.gr_mem)} members"
    return ok(f"number {found.gr_gid}, lists {members}")
