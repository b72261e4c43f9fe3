"""Pages of a browser, and pictures of them."""

import logging
import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    Error,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.browser.chromium import launch
from tests.instance import ROOT

log = logging.getLogger(__name__)

# What the form shows of the cluster is refreshed every ten seconds; and other tests run beside.
PATIENCE = 60_000
"""Milliseconds."""
FOR_TESTS_ONLY = """.jp-LauncherCard:is(
    [title^="Broken"], [title^="Cannot be used"], [title^="Elsewhere"]
)"""
"""Cards of what the test instance has so that it fails."""
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


def _new_page(chromium: Browser) -> Page:
    """Open a page of a fresh browser profile."""
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.on("requestfailed", _tell)
    return page


@pytest.fixture(scope="module")
def kept_pages(chromium: Browser) -> Iterator[list[Page]]:
    """The page that the test before has left for this one, if any."""
    pages: list[Page] = []
    yield pages
    for page in pages:
        page.context.close()


@pytest.fixture
def page(
    chromium: Browser, kept_pages: list[Page], request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Page]:
    """A page of a fresh browser profile; a picture of it is kept when the test fails.

    With the mark `same_page` it is that of the test before, where that has the mark, too, and has
    passed: `tests.browser.lab.open_lab` empties a JupyterLab that is open, as to load it takes
    seconds of a core. A test without the mark may end the session that the page is of.
    """
    is_shared = request.node.get_closest_marker("same_page") is not None
    kept = kept_pages.pop() if kept_pages else None
    if kept and not is_shared:
        kept.context.close()
        kept = None
    page = kept or _new_page(chromium)
    yield page
    has_failed = request.node.stash.get(FAILED, False)
    for number, opened in enumerate(page.context.pages if has_failed else []):
        name = re.sub(r"\W+", "-", request.node.name)
        # There is none of a page that is on its way to another.
        with suppress(Error):
            opened.screenshot(path=tmp_path / f"{name}-{number}.png")
    if not is_shared or has_failed or page.is_closed():
        page.context.close()
        return
    for other in page.context.pages:
        if other is not page:
            other.close()
    kept_pages.append(page)


@pytest.fixture
def photograph(tmp_path: Path) -> Callable[[Page, str], None]:
    """Take a picture for the documentation: into ``docs/images`` with ``PORTAL_PICTURES=1``."""
    is_for_readers = os.environ.get("PORTAL_PICTURES") == "1"
    folder = ROOT / "docs" / "images" if is_for_readers else tmp_path

    def take(page: Page, name: str) -> None:
        if is_for_readers:
            page.add_style_tag(content=f"{FOR_TESTS_ONLY} {{ display: none; }}")
        page.screenshot(path=folder / f"{name}.png")

    return take
