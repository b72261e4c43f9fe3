"""TLS between the hub, its services and the other parts: certificates and trusted authorities.

The hub's services run as the hub's user, and show the hub's own certificate.
"""

import ssl
from pathlib import Path

from dsportal.settings.hub import HubSettings


def context(hub: HubSettings, purpose: ssl.Purpose) -> ssl.SSLContext | None:
    """Return how a service of the hub speaks to the other parts; ``None`` without TLS.

    Only the hub's own authorities count, not those that the machine trusts.
    """
    if not hub.internal_ssl:
        return None
    folder = Path(hub.certificates_dir)
    made = ssl.create_default_context(purpose, cafile=str(trusted(folder)))
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_cert_chain(*pair(folder))
    return made


def client_context(hub: HubSettings) -> ssl.SSLContext | None:
    """Return how a service asks the hub."""
    return context(hub, ssl.Purpose.SERVER_AUTH)


def pair(folder: Path) -> tuple[Path, Path]:
    """Return the files of the hub's own certificate and key."""
    return folder / "hub-internal/hub-internal.crt", folder / "hub-internal/hub-internal.key"


def trusted(folder: Path) -> Path:
    """Return the file with the authorities that the hub trusts."""
    return folder / "hub-ca_trust.crt"
