"""The browser of tests and benchmarks: a real Chromium, headless, driven by Playwright."""

import base64
import hashlib

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from playwright.sync_api import Browser, Playwright

from tests.instance import SETTINGS

# What the portal's certificate names besides the address, for tests of host names.
_NAMES = ["--host-resolver-rules=MAP *.portal.test 127.0.0.1, MAP portal.test 127.0.0.1"]
_PROGRAM = "/usr/bin/chromium-headless-shell"  # all but the windows that nobody sees
_ARGUMENTS = [
    "--no-sandbox",  # the tests run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def _trust() -> list[str]:
    """Let it, which has a store of its own, take the certificate of the test instance."""
    certificate = SETTINGS.parent / "tls" / "portal.crt"
    if not certificate.exists():
        return []
    key = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    known = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    digest = base64.b64encode(hashlib.sha256(known).digest()).decode()
    return [f"--ignore-certificate-errors-spki-list={digest}"]


def launch(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(
        executable_path=_PROGRAM, args=[*_ARGUMENTS, *_trust(), *_NAMES]
    )
