"""A real Chromium, headless, driven by Playwright."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.instance import ROOT

# What the form shows of the cluster is refreshed every ten seconds.
expect.set_options(timeout=30_000)

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


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module: while it is open, its event loop is that of this thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
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
