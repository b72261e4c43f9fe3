"""A real Chromium, headless, driven by Playwright."""

import base64
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.instance import ROOT, SETTINGS

# What the form shows of the cluster is refreshed every ten seconds.
expect.set_options(timeout=30_000)

# What the portal's certificate names besides the address, for tests of host names.
NAMES = ["--host-resolver-rules=MAP *.portal.test 127.0.0.1, MAP portal.test 127.0.0.1"]
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",  # the tests run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def trust() -> list[str]:
    """Let Chromium, which has a store of its own, take the certificate of the test instance."""
    certificate = SETTINGS.parent / "tls" / "portal.crt"
    if not certificate.exists():
        return []
    key = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    known = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    digest = base64.b64encode(hashlib.sha256(known).digest()).decode()
    return [f"--ignore-certificate-errors-spki-list={digest}"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module: while it is open, its event loop is that of this thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*ARGUMENTS, *trust(), *NAMES]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Page]:
    """A page of a fresh browser profile; a picture of it is kept when the test fails."""
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(30_000)
    page = context.new_page()
    yield page
    for number, opened in enumerate(context.pages):
        name = re.sub(r"\W+", "-", request.node.name)
        opened.screenshot(path=tmp_path / f"{name}-{number}.png")
    context.close()


@pytest.fixture
def photograph(tmp_path: Path) -> Callable[[Page, str], None]:
    """Take a picture for the documentation: into ``docs/images`` with ``PORTAL_PICTURES=1``."""
    folder = ROOT / "docs" / "images" if os.environ.get("PORTAL_PICTURES") == "1" else tmp_path

    def take(page: Page, name: str) -> None:
        page.screenshot(path=folder / f"{name}.png")

    return take
