"""JupyterLab without the extensions that a site has switched off: it works, and asks for none."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from tests import faults
from tests.browser.jupyterlab.test_parquet import MAKE
from tests.browser.lab import open_lab
from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

pytestmark = pytest.mark.browser

USER = USERS[4]
# Below the session's own path.
SERVER_PARTS = re.compile(rf"/user/{USER}/(git|lsp|jupyterlab_code_formatter|search)/")


@pytest.fixture
def user(portal: Instance) -> Iterator[Visitor]:
    """A user whose session has none of them."""
    with (
        faults.setting(portal, "[session]", "[session]\nextensions = []"),
        session_of(portal, USER) as user,
    ):
        yield user


def test_nothing_is_left_of_what_is_switched_off(
    portal: Instance, user: Visitor, page: Page
) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        if SERVER_PARTS.match(path := urlsplit(request.url).path):
            asked.append(path)

    page.on("request", note)
    assert user.run(f'{MAKE}\ntable.to_csv("losses.csv")') == ""
    open_lab(page, portal, user.name)
    page.get_by_role("button", name=re.compile("^Python 3")).first.click()
    expect(page.get_by_text("Python 3 | Idle")).to_be_visible()
    page.locator(".jp-Notebook-cell .cm-content").last.click()
    page.keyboard.type("6 * 7")
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".jp-OutputArea-output").first).to_have_text("42")

    expect(page.get_by_role("tab", name="File Browser")).to_have_count(1)
    for tab in ("Git", "Search and Replace", "Debugger", "Table of Contents"):
        expect(page.get_by_role("tab", name=tab)).to_have_count(0)
    expect(page.get_by_role("button", name="Enable Debugger")).to_have_count(0)
    expect(page.locator(".execute-time")).to_have_count(0)
    page.get_by_role("menuitem", name="Edit", exact=True).click()
    expect(page.get_by_role("menuitem", name="Clear Cell Output")).to_be_visible()
    expect(page.get_by_role("menuitem", name=re.compile("formatter"))).to_have_count(0)
    page.keyboard.press("Escape")
    page.get_by_role("listitem", name=re.compile("^Name: templates")).click(button="right")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_visible()
    expect(page.get_by_role("menuitem", name="Download as ZIP")).to_have_count(0)
    page.keyboard.press("Escape")
    # A table is a file like others, and nothing speaks of notifications.
    page.locator(".jp-DirListing-item", has_text="losses.parquet").dblclick()
    expect(page.get_by_role("dialog")).to_contain_text("losses.parquet")
    page.keyboard.press("Escape")
    expect(page.locator(".dsp-Table")).to_have_count(0)
    # One whose columns are divided by commas is a text.
    page.locator(".jp-DirListing-item", has_text="losses.csv").dblclick()
    expect(page.locator(".cm-content", has_text="step,loss")).to_be_visible()
    expect(page.locator(".jp-CSVViewer")).to_have_count(0)
    page.keyboard.press("Control+Shift+C")
    page.keyboard.type("notif")
    shown = page.locator(".lm-CommandPalette-item")
    expect(shown.first).to_be_visible()
    expect(shown.filter(has_text="Notify Me")).to_have_count(0)
    assert asked == []
