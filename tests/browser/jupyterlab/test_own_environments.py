"""My Environments, as a user works with it: by keyboard, until the kernel is in the launcher."""

import pwd
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dsportal.session.own_environments.sizes import size_words
from tests.browser.fit import assert_part_is_fit
from tests.browser.jupyterlab.test_launcher import card
from tests.browser.lab import open_lab
from tests.instance import PREFIX, USERS, Instance
from tests.packages import wheel
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[3]


@pytest.fixture
def on_nas(portal: Instance) -> Path:
    """The folder of the user's environments on the NAS."""
    folders = portal.settings["session"]["environments_folders"]
    return Path(folders["isilon"].replace("{user}", USER))


@pytest.fixture
def package(portal: Instance, visit: Callable[[str], Visitor], on_nas: Path) -> Iterator[Path]:
    """A package that a user with a session can read; the user has no environments."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    for place in (home / "environments", on_nas):
        shutil.rmtree(place, ignore_errors=True)
    folder = Path("/tmp", f"portal-{PREFIX}-packages")  # noqa: S108 - other users read it
    folder.mkdir(mode=0o755, exist_ok=True)
    visit(USER).start_and_wait(gpus=0)
    yield wheel(folder, "mine_tool")
    shutil.rmtree(folder)
    for place in (home / "environments", on_nas):
        shutil.rmtree(place, ignore_errors=True)


def test_an_environment_is_made_and_removed(
    portal: Instance,
    package: Path,
    on_nas: Path,
    page: Page,
    photograph: Callable[[Page, str], None],
) -> None:
    open_lab(page, portal, USER)
    card(page, "Other", "My Environments").click()
    view = page.locator(".portal-Environments")
    view.locator("#portal-environment-name").fill("bad name")
    view.locator("#portal-environment-name").press("Enter")
    expect(view.get_by_role("alert")).not_to_be_empty()
    view.locator("#portal-environment-name").fill("mine")
    view.locator("#portal-environment-on").select_option('["pytorch/2.13"]')
    view.get_by_label("Stored in").select_option("isilon")
    view.locator("#portal-environment-packages").fill(str(package))
    view.locator("#portal-environment-packages").press("Enter")
    expect(view.locator("[data-state]")).to_have_attribute("data-state", "done")
    row = view.locator('li[data-name="mine"]')
    expect(row).to_contain_text("pytorch/2.13")
    expect(row).to_contain_text("isilon")
    assert (on_nas / "mine/bin/python").exists()
    disk = shutil.disk_usage(on_nas)
    use = f" of {size_words(disk.used + disk.free)} used"
    expect(view).to_contain_text(re.compile(rf"isilon: [0-9.]+ [KMGTP]?i?B{re.escape(use)}"))
    assert_part_is_fit(page, "My Environments", ".portal-Environments")
    photograph(page, "my-environments")
    page.get_by_role("tab", name="Launcher").click()
    # Playwright's own expressions take no slash.
    kernel = page.locator(".jp-LauncherCard", has_text="mine (pytorch/2.13)")
    expect(kernel.first).to_be_visible()
    page.get_by_role("tab", name="My Environments").click()
    row.get_by_role("button").click()
    page.get_by_role("dialog").locator(".jp-mod-warn").click()
    expect(row).to_have_count(0)
    expect(view.locator("[data-state]")).to_have_attribute("data-state", "done")
    # The button that had the keyboard's focus is gone with its row.
    expect(view.locator("[data-state]")).to_be_focused()
