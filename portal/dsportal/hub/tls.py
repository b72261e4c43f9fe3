"""TLS between the hub, its services and the other parts: certificates and trusted authorities.

The hub's services run as the hub's user, and show the hub's own certificate.
"""

import ssl
from pathlib import Path

from dsportal.settings.hub import HubSettings
from dsportal.tls_context import tls_context


def context(hub: HubSettings, purpose: ssl.Purpose) -> ssl.SSLContext | None:
    """Return how a service of the hub speaks to the other parts; ``None`` without TLS."""
    if not hub.internal_ssl:
        return None
    folder = Path(hub.certificates_dir)
    certificate, key = pair(folder)
    return tls_context(str(key), str(certificate), str(trusted(folder)), purpose)


def client_context(hub: HubSettings) -> ssl.SSLContext | None:
    """Return how a service asks the hub."""
    return context(hub, ssl.Purpose.SERVER_AUTH)


def pair(folder: Path) -> tuple[Path, Path]:
    """Return the files of the hub's own certificate and key."""
    return folder / "hub-internal/hub-internal.crt", folder / "hub-internal/hub-internal.key"


def trusted(folder: Path) -> Path:
    """Return the file with the authorities that the hub trusts."""
    return folder / "hub-ca_trust.crt"
