"""What a user sees of a NAS that does not answer."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.lab import open_lab
from tests.hanging import Server, served
from tests.instance import USERS, Instance
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[1]


@pytest.fixture
def nas(portal: Instance, tmp_path: Path) -> Iterator[Server]:
    """The test instance's NAS, silent from the beginning."""
    tmp_path.chmod(0o755)
    with served(tmp_path, Path(portal.settings["session"]["folders"]["isilon"])) as server:
        server.freeze()
        yield server


def test_the_landing_screen_names_the_mount_and_stays_usable(
    portal: Instance, nas: Server, visit: Callable[[str], Visitor], page: Page
) -> None:
    visit(USER).start_and_wait(gpus=0)
    open_lab(page, portal, USER, to=f"/user/{USER}/lab?reset")
    folder = portal.settings["session"]["folders"]["isilon"]
    notice = page.get_by_role("alert").filter(has_text=f"isilon ({folder})")
    expect(notice).to_contain_text("not responded")
    expect(notice).to_be_visible()
    listing = page.locator(".jp-DirListing-content")
    expect(listing.get_by_text("isilon")).to_be_visible()
    listing.get_by_text("isilon").dblclick()
    refused = page.get_by_role("alert").filter(has_text="other files")
    expect(refused).to_contain_text(f"{folder} has not responded")
    expect(listing.get_by_text("templates")).to_be_visible()
