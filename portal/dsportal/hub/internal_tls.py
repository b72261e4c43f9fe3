"""TLS between hub, proxy, services and sessions: the hub's own authorities, and who uses what.

JupyterHub's `internal_ssl` has one authority for each kind of part, and files with those that a
part trusts. Here they are made before hub and proxy start
(``python -m dsportal.hub.internal_tls``), and again where one would soon end or the hub has got
another address.
"""

import argparse
import asyncio
import ipaddress
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from certipy import Certipy
from cryptography import x509
from jupyterhub.app import JupyterHub

from dsportal.settings.hub import HubSettings
from dsportal.settings_file import file_of, load
from dsportal.values import host_of

PARTS = {"hub-internal": "hub-ca", "proxy-api": "proxy-api-ca", "proxy-client": "proxy-client-ca"}
"""Certificate -> the authority that signs it."""
_RENEWED_BEFORE = timedelta(days=365)
_LOCAL = ("DNS:localhost", "IP:127.0.0.1", "IP:0:0:0:0:0:0:0:1")


def names(hub: HubSettings) -> list[str]:
    """Return under which name or address sessions and proxy reach the hub, as OpenSSL has it."""
    host = host_of(hub.api_url)
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return [f"DNS:{host}"]
    return [f"IP:{host}"]


def prepare(hub: HubSettings, now: datetime) -> list[str]:
    """Make what is missing, soon ends, or has another address; return what was made."""
    folder = Path(hub.certificates_dir)
    folder.mkdir(mode=0o700, exist_ok=True)
    before = {name: digest(folder, name) for name in PARTS}
    asyncio.run(_make_missing(hub))
    store = Certipy(store_dir=str(folder))
    for name, authority in PARTS.items():
        if not _is_fit(certificate(folder, name), names(hub), now):
            alt_names = [*dict.fromkeys([*_LOCAL, *names(hub)])]
            store.create_signed_pair(name, authority, alt_names=alt_names, overwrite=True)
    # Certipy opens its folder to all.
    folder.chmod(0o700)
    return [name for name in PARTS if digest(folder, name) != before[name]]


async def _make_missing(hub: HubSettings) -> None:
    app = JupyterHub(
        internal_ssl=True,
        internal_certs_location=hub.certificates_dir,
        trusted_alt_names=names(hub),
        log_level="WARN",
    )
    app.init_internal_ssl()


def certificate(folder: Path, name: str) -> x509.Certificate:
    """Read one of the certificates, or an authority's."""
    return x509.load_pem_x509_certificate((folder / name / f"{name}.crt").read_bytes())


def digest(folder: Path, name: str) -> str:
    """Return what changes with a certificate; empty where there is none."""
    file = folder / name / f"{name}.crt"
    return f"{certificate(folder, name).serial_number:x}" if file.exists() else ""


def _is_fit(found: x509.Certificate, wanted: list[str], now: datetime) -> bool:
    if found.not_valid_after_utc - now < _RENEWED_BEFORE:
        return False
    alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    has = {f"DNS:{name}" for name in alternatives.get_values_for_type(x509.DNSName)}
    has |= {f"IP:{address}" for address in alternatives.get_values_for_type(x509.IPAddress)}
    return set(wanted) <= has


def main() -> int:
    """Prepare what the settings file asks for; print the serial numbers, then what was made."""
    parser = argparse.ArgumentParser(prog="dsportal.hub.internal_tls", description=main.__doc__)
    parser.add_argument("--show", action="store_true", help="make nothing")
    is_shown = parser.parse_args().show
    os.umask(0o077)
    hub = load(file_of(os.environ)).hub
    made = prepare(hub, datetime.now(UTC)) if hub.internal_ssl and not is_shown else []
    folder = Path(hub.certificates_dir)
    serials = " ".join(digest(folder, name) for name in PARTS) if hub.internal_ssl else "off"
    sys.stdout.writelines(f"{line}\n" for line in (serials, *(f"made {name}" for name in made)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
