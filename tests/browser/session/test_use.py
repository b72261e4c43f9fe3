"""What a session uses, as its user sees it. Only NVIDIA's library is a stand-in: tests/nvml."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests import nvml
from tests.browser.lab import open_lab
from tests.instance import USERS, Instance
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[3]


@pytest.fixture
def user(visit: Callable[[str], Visitor]) -> Visitor:
    """A user without a session."""
    user = visit(USER)
    user.leave()
    return user


def panel(page: Page) -> Locator:
    return page.locator("#data-scientist-portal-use")


def group(page: Page, title: str) -> Locator:
    heading = page.get_by_role("heading", name=re.compile(f"^{title}"))
    return panel(page).locator("section", has=heading)


def test_gpus_processors_memory_and_files_are_shown(
    portal: Instance, user: Visitor, page: Page
) -> None:
    with nvml.on_nodes(portal) as driver:
        driver.tell("83 21000 32768 64 255000\n0 412 32768 31 41000\n")
        user.start_and_wait(gpus=2)
        open_lab(page, portal, USER)

        # Opened by keyboard from the status bar.
        item = page.get_by_role("button", name="2 GPUs: 42 %")
        expect(item).to_be_visible(timeout=90_000)
        item.press("Enter")
        expect(panel(page)).to_be_visible()
        expect(group(page, "GPU 0")).to_contain_text("Stand-in V100 · 64 °C · 255 W")
        expect(group(page, "GPU 0")).to_contain_text("83 %")
        expect(group(page, "GPU 0")).to_contain_text("21 GiB of 32 GiB")
        expect(group(page, "GPU 1")).to_contain_text("412 MiB of 32 GiB")

        # Each chart says in words what it shows, and so does the table.
        name = re.compile(r"This session, CPU: now .* of 16 cores; highest")
        expect(panel(page).get_by_role("img", name=name)).to_be_visible()
        table = panel(page).get_by_role("table")
        expect(table).to_be_hidden()
        panel(page).locator("summary").press("Enter")
        row = table.get_by_role("row", name="In use").first
        expect(row.get_by_role("cell")).to_have_text(["83 %", "83 %", "83 %"])
        panel(page).locator("summary").press("Enter")

        # The page follows.
        driver.tell("12 9000 32768 50 90000\n0 412 32768 31 41000\n")
        expect(group(page, "GPU 0")).to_contain_text("12 %")
        user.leave()


def test_without_an_nvidia_driver_the_panel_says_so(
    portal: Instance, user: Visitor, page: Page
) -> None:
    user.start_and_wait(gpus=1)
    open_lab(page, portal, USER)
    item = page.get_by_role("button", name=re.compile("^CPU: .* of 8 cores"))
    expect(item).to_be_visible(timeout=90_000)
    item.click()
    expect(panel(page)).to_contain_text("no NVIDIA driver")
    expect(group(page, "GPU")).to_have_count(0)
    expect(group(page, "This session")).to_contain_text("of 8 cores")

    # Old figures are not shown as if they were of now.
    page.route("**/portal/use?*", lambda route: route.abort())
    expect(panel(page)).to_contain_text("is not responding", timeout=60_000)
    expect(page.get_by_role("button", name="My GPUs", exact=True)).to_be_visible()
    page.unroute("**/portal/use?*")
    expect(panel(page)).to_contain_text("no NVIDIA driver", timeout=90_000)
    expect(item).to_be_visible()
