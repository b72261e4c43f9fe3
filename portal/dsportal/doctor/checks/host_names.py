"""Checks of the host names of users, asked for as a browser would."""

import socket
import ssl
from urllib.parse import urlsplit

from dsportal.doctor.expected import ExpectedHub
from dsportal.doctor.finding import Finding, failed
from dsportal.doctor.judgement import host_names
from dsportal.doctor.judgement.host_names import Seen

ANYBODY = "any-user"
"""What only a name for all users, ``*.NAME``, is an answer to."""
_SECONDS = 4.0


def of_users(expected: ExpectedHub) -> Finding:
    """See whether there are any, where they lead, and what is shown there."""
    if not expected.subdomain_host:
        return host_names.missing()
    place = urlsplit(expected.subdomain_host)
    name = place.hostname or ""
    below = f"{ANYBODY}.{name}"
    seen = Seen(name, _addresses(name), _addresses(below))
    if place.scheme == "https" and seen.below:
        try:
            complaint = _complaint(below, min(seen.below), place.port or 443)
        except OSError as error:
            return failed(
                f"nothing speaks HTTPS at {below}: {error.strerror or error}",
                "start the service proxy, or what speaks HTTPS for it",
            )
        seen = Seen(name, seen.addresses, seen.below, complaint)
    return host_names.judge(seen)


def _addresses(name: str) -> frozenset[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return frozenset()
    return frozenset(str(one[4][0]) for one in found)


def _complaint(name: str, address: str, port: int) -> str:
    """Say what is wrong with the certificate's names; whether to trust it, others look at."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    shown = _shown(trusting, name, address, port)
    # It counts as known, so that only its names and its time are left to be checked.
    checking = ssl.create_default_context(cadata=ssl.DER_cert_to_PEM_cert(shown))
    checking.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    checking.verify_flags &= ~ssl.VERIFY_X509_STRICT
    try:
        _shown(checking, name, address, port)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    return ""


def _shown(context: ssl.SSLContext, name: str, address: str, port: int) -> bytes:
    with (
        socket.create_connection((address, port), timeout=_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=name) as encrypted,
    ):
        return encrypted.getpeercert(binary_form=True) or b""
