"""JupyterLab's tab is closed: whoever leaves GPUs reserved hears of it, once, unless it is off."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.browser.fit import assert_dialog_is_fit
from tests.browser.keyboard import press
from tests.browser.lab import open_lab
from tests.browser.session.test_clock import time_left
from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

pytestmark = pytest.mark.browser

USER = USERS[3]


@pytest.fixture(scope="module")
def owner(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USER) as owner:
        yield owner


@pytest.fixture
def user(owner: Visitor) -> Visitor:
    """A user with a session without GPUs, for the tests of this module that want none."""
    if owner.server() is None:
        owner.start_and_wait(gpus=0)
    return owner


def watch(page: Page) -> list[str]:
    """Note what the browser asks; each time the user stays."""
    kinds: list[str] = []

    def stay(dialog: Dialog) -> None:
        kinds.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    return kinds


def wait_for_what_is_held(page: Page) -> None:
    """Wait until the page knows what its session holds: the server asks the hub, who asks Slurm."""
    expect(time_left(page)).to_be_visible()
    page.wait_for_timeout(2000)  # the reminder's own question, which has the same answer


def close(page: Page) -> None:
    """Close the tab as a person does."""
    page.locator(".jp-Launcher").click(position={"x": 5, "y": 5})
    page.close(run_before_unload=True)


@pytest.mark.same_page
@pytest.mark.usefixtures("user")
def test_the_file_browsers_buttons_are_in_one_row(portal: Instance, page: Page) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    open_lab(page, portal, USER)
    buttons = page.locator(".jp-FileBrowser-toolbar > .jp-Toolbar-item:visible")
    expect(buttons).to_have_count(6)
    boxes = [button.bounding_box() for button in buttons.all()]
    assert len({round(box["y"]) for box in boxes if box}) == 1
    names = [button.get_attribute("data-jp-item-name") for button in buttons.all()]
    assert "tensorboard" in names
    # Cloning is in Git's own menu.
    page.get_by_role("menuitem", name="Git", exact=True).click()
    expect(page.get_by_role("menuitem", name="Clone a Repository")).to_be_visible()


@pytest.mark.same_page
@pytest.mark.usefixtures("user")
def test_who_holds_no_gpus_is_not_asked(portal: Instance, page: Page) -> None:
    open_lab(page, portal, USER)
    asked = watch(page)
    wait_for_what_is_held(page)
    with page.expect_event("close"):
        close(page)
    assert asked == []


def test_who_closes_the_tab_is_told_once_that_gpus_stay_reserved(
    portal: Instance,
    page: Page,
    visit: Callable[[str], Visitor],
    photograph: Callable[[Page, str], None],
) -> None:
    user = visit(USER)
    user.leave()
    user.start_and_wait(gpus=2, hours=1)
    open_lab(page, portal, USER)
    asked = watch(page)
    wait_for_what_is_held(page)
    close(page)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile(r"2 GPUs stay reserved .*until \d+:\d\d"))
    assert asked == ["beforeunload"]
    assert_dialog_is_fit(page, "2 GPUs stay reserved")
    photograph(page, "leaving")
    press(page, dialog.get_by_role("button", name="Stop Session…"))
    expect(page.get_by_role("dialog")).to_contain_text("Stop this session?")
    press(page, page.get_by_role("dialog").get_by_role("button", name="Cancel"))
    expect(page.get_by_role("dialog")).to_have_count(0)

    with page.expect_event("close"):
        close(page)
    assert asked == ["beforeunload"]
