"""Pages of a browser, and pictures of them."""

import logging
import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, Request, expect, sync_playwright

from tests.browser.chromium import launch
from tests.instance import ROOT

log = logging.getLogger(__name__)

# What the form shows of the cluster is refreshed every ten seconds; and other tests run beside.
PATIENCE = 60_000
"""Milliseconds."""
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module: while it is open, its event loop is that of this thread."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


def _tell(failed: Request) -> None:
    """Say in the test's report why a page did not come at all: the page itself is blank then."""
    if failed.is_navigation_request():
        log.warning("%s %s: %s", failed.method, failed.url, failed.failure)


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether a test failed, for its fixtures' ends."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture
def page(chromium: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Page]:
    """A page of a fresh browser profile; a picture of it is kept when the test fails."""
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.on("requestfailed", _tell)
    yield page
    pages = context.pages if request.node.stash.get(FAILED, False) else []
    for number, opened in enumerate(pages):
        name = re.sub(r"\W+", "-", request.node.name)
        # There is none of a page that is on its way to another.
        with suppress(Error):
            opened.screenshot(path=tmp_path / f"{name}-{number}.png")
    context.close()


@pytest.fixture
def photograph(tmp_path: Path) -> Callable[[Page, str], None]:
    """Take a picture for the documentation: into ``docs/images`` with ``PORTAL_PICTURES=1``."""
    folder = ROOT / "docs" / "images" if os.environ.get("PORTAL_PICTURES") == "1" else tmp_path

    def take(page: Page, name: str) -> None:
        page.screenshot(path=folder / f"{name}.png")

    return take
