"""TLS between the session, the hub and its proxy: JupyterHub's ``internal_ssl``.

The session's key comes with its orders and lies in the folder that only the user can enter, since
JupyterHub's own code takes files; it goes with that folder.
"""

import os
import ssl
from pathlib import Path

from dsportal.session_schema import Certificate
from dsportal.tls_context import tls_context

_KEY, _CERTIFICATE, _TRUSTED = (
    "JUPYTERHUB_SSL_KEYFILE",
    "JUPYTERHUB_SSL_CERTFILE",
    "JUPYTERHUB_SSL_CLIENT_CA",
)


def install(certificate: Certificate, folder: Path) -> dict[str, str]:
    """Write the files; return JupyterHub's variables that name them."""
    contents = {
        _KEY: ("tls.key", certificate.key),
        _CERTIFICATE: ("tls.crt", certificate.certificate),
        _TRUSTED: ("tls-authorities.crt", certificate.authorities),
    }
    for name, text in contents.values():
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
    return {variable: str(folder / name) for variable, (name, _) in contents.items()}


def client_context() -> ssl.SSLContext | None:
    """Return how the session asks the hub and its services; ``None`` without TLS."""
    return _context(ssl.Purpose.SERVER_AUTH)


def server_context() -> ssl.SSLContext | None:
    """Return how the session listens: only the hub and its proxy may connect."""
    return _context(ssl.Purpose.CLIENT_AUTH)


def _context(purpose: ssl.Purpose) -> ssl.SSLContext | None:
    key_file = os.environ.get(_KEY)
    if not key_file:
        return None
    return tls_context(key_file, os.environ[_CERTIFICATE], os.environ[_TRUSTED], purpose)
