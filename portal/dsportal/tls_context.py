"""TLS between the parts of the portal: made once for each certificate, then shared.

JupyterHub 6.1.1 makes a context for each question about a login, and for each session that it waits
for. Each reads all authorities that the machine trusts, which takes 40 ms and 1 MB with Debian's,
while the event loop waits. And since the HTTP client uses a connection again only with the same
context, each question has a connection and a handshake of its own. `reuse_contexts` ends that.
"""

import ssl
from functools import cache
from types import ModuleType


@cache
def tls_context(
    key: str,
    certificate: str,
    authorities: str | None,
    purpose: ssl.Purpose,
) -> ssl.SSLContext:
    """Return how a part shows its certificate, and whose it asks for.

    Only these authorities count, not those that the machine trusts. All are paths of files, which
    are read once: a part is started anew with another certificate.
    """
    made = ssl.create_default_context(purpose, cafile=authorities)
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_cert_chain(certificate, key)
    return made


def reuse_contexts(*users: ModuleType) -> None:
    """Let modules of JupyterHub that make contexts share them."""
    for user in users:
        user.make_ssl_context = _make_ssl_context  # type: ignore[attr-defined]


def _make_ssl_context(
    keyfile: str,
    certfile: str,
    cafile: str | None = None,
    purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH,
) -> ssl.SSLContext | None:
    """Do as `jupyterhub.utils.make_ssl_context`, without what it calls deprecated."""
    if not keyfile or not certfile:
        return None
    return tls_context(keyfile, certfile, cafile or None, purpose)
