"""A Parquet file opens as a table that is read page by page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser.fit import assert_part_is_fit
from tests.browser.keyboard import press
from tests.browser.lab import open_lab
from tests.instance import USERS, Instance
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[3]
MAKE = """
import pandas
steps = range(450)
table = pandas.DataFrame({"step": steps, "loss": [2.5 / (1 + step) for step in steps]})
table["note"] = ["<b>bold</b>" if step % 2 else None for step in steps]
table.to_parquet("losses.parquet")
"""


def test_its_rows_are_seen_page_by_page(
    portal: Instance,
    visit: Callable[[str], Visitor],
    page: Page,
    photograph: Callable[[Page, str], None],
) -> None:
    user = visit(USER)
    user.start_and_wait(gpus=0)
    assert user.run(MAKE) == ""
    asked: list[str] = []

    def note(request: Request) -> None:
        if "losses.parquet" in request.url:
            asked.append(request.url)

    open_lab(page, portal, USER)
    page.on("request", note)
    page.locator(".jp-DirListing-item", has_text="losses.parquet").click()
    page.keyboard.press("Enter")
    table = page.locator(".dsp-Table")
    expect(table.get_by_role("status")).to_have_text("Rows 1 to 200 of 450")
    expect(table.locator("tbody tr")).to_have_count(200)
    expect(table.locator("thead th").nth(2)).to_contain_text("loss")
    expect(table.locator("tbody tr").nth(1).locator("td")).to_have_text(
        ["1", "1.25", "<b>bold</b>"]
    )
    assert_part_is_fit(page, "Parquet", ".dsp-Table")
    photograph(page, "parquet-table")
    press(page, table.get_by_role("button", name="Next"))
    expect(table.get_by_role("status")).to_have_text("Rows 201 to 400 of 450")
    page.keyboard.press("Enter")  # the button has the focus still
    expect(table.get_by_role("status")).to_have_text("Rows 401 to 450 of 450")
    expect(table.get_by_role("button", name="Next")).to_be_disabled()
    # With the button its focus would have gone.
    expect(table.get_by_role("region")).to_be_focused()
    table.get_by_role("button", name="First Rows").click()
    expect(table.get_by_role("status")).to_have_text("Rows 1 to 200 of 450")
    # Where nobody answers it can be tried again; with that button its focus would have gone, too.
    page.route("**/portal/parquet/**", lambda route: route.abort())
    table.get_by_role("button", name="Next").click()
    again = table.get_by_role("button", name="Try Again")
    expect(again).to_be_visible()
    page.unroute("**/portal/parquet/**")
    press(page, again)
    expect(table.get_by_role("status")).to_have_text("Rows 201 to 400 of 450")
    expect(table.get_by_role("region")).to_be_focused()
    # The file itself is never loaded.
    assert asked
    assert not [url for url in asked if "/files/" in url or "content=1" in url]

    # A page that is loaded again has it again.
    page.reload()
    expect(table.get_by_role("status")).to_have_text("Rows 1 to 200 of 450", timeout=90_000)

    # Renamed while it is open, it is still read.
    page.locator(".jp-DirListing-item", has_text="losses.parquet").click()
    page.keyboard.press("F2")
    page.locator(".jp-DirListing-editor").fill("renamed.parquet")
    page.keyboard.press("Enter")
    expect(page.locator(".jp-DirListing-item", has_text="renamed.parquet")).to_be_visible()
    press(page, table.get_by_role("button", name="Next"))
    expect(table.get_by_role("status")).to_have_text("Rows 201 to 400 of 450")
    assert user.run("import os; os.remove('renamed.parquet')") == ""
