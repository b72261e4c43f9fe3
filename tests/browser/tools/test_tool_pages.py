"""What is shown in the place of a web tool: why it does not run, and whether to start it."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.fit import assert_has_no_faults, forms
from tests.browser.lab import log_in
from tests.instance import USERS, Instance
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[1]


def test_who_finds_no_tool_reads_why(
    portal: Instance, page: Page, visit: Callable[[str], Visitor]
) -> None:
    visit(USER).start_and_wait(gpus=0)
    # Its program is one that no node has.
    path = f"/user/{USER}/tools/elsewhere/"
    # Nor does the login start it: a link may have led to it.
    log_in(page, portal, USER, to=path)
    page.get_by_role("button", name="Start Elsewhere").click()
    expect(page.get_by_role("heading", name="Elsewhere is not running")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("no-such-tool")
    for _, seen in forms(page, "a tool that failed"):
        assert_has_no_faults(page, seen)

    # Another site's link starts nothing by itself.
    page.goto("about:blank")
    page.set_content(f'<a href="{portal.host_of(USER)}{path}">a tool</a>')
    page.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Start Elsewhere?")).to_be_visible()
    for _, seen in forms(page, "a question before a tool starts"):
        assert_has_no_faults(page, seen)
    page.get_by_role("button", name="Start Elsewhere").click()
    expect(page.get_by_role("alert")).to_contain_text("no-such-tool")
