"""The hub's pages by keyboard alone: Tab leads to whatever is needed, and Enter does it."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.keyboard import press, tab_to
from tests.browser.lab import log_in
from tests.instance import PASSWORD, USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.browser

USER = USERS[2]


def log_in_by_keyboard(page: Page) -> None:
    """Give name and password: the first field has the focus."""
    page.keyboard.type(USER)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"/user/{USER}/"))


def test_a_session_is_extended_reached_and_left(
    portal: Instance, page: Page, visit: Callable[[str], Visitor]
) -> None:
    user = visit(USER)
    user.leave()
    job_id = user.start_and_wait(gpus=1, hours=1)
    page.goto(portal.url)
    log_in_by_keyboard(page)
    page.goto(f"{portal.url}/hub/home")
    tab_to(page, page.get_by_label("Extend by"))
    page.keyboard.type("30")
    press(page, page.get_by_role("button", name="Extend", exact=True))
    # The page anew.
    expect(page.locator("[data-left]")).to_have_text(re.compile("^1 h 2[0-9] min$"))
    assert portal.job(job_id)["TimeLimit"] == "01:30:00"

    press(page, page.get_by_role("link", name="Connect with SSH or VS Code"))
    expect(page.get_by_role("heading", name="Connect with SSH")).to_be_visible()
    with page.expect_download() as token:
        press(page, page.get_by_role("button", name="Create and save a token"))
    assert token.value.suggested_filename == "portal-token"

    press(page, page.get_by_role("navigation").get_by_role("link", name="Tokens"))
    page.wait_for_function("window._jupyterhub_page_loaded")
    tab_to(page, page.get_by_label("What it is for"))
    page.keyboard.type(f"of {job_id}")
    page.keyboard.press("Enter")
    expect(page.locator("#token-result")).not_to_be_empty()
    page.reload()
    page.wait_for_function("window._jupyterhub_page_loaded")
    revoke = page.get_by_role("button", name=f"Revoke of {job_id}")
    press(page, revoke)
    expect(revoke).to_have_count(0)

    press(page, page.get_by_role("link", name="Log out"))
    expect(page.get_by_text("1 GPU stays reserved")).to_be_visible()
    press(page, page.locator("#leave"))
    expect(page.get_by_label("Username")).to_be_visible()
    assert portal.jobs(user=USER) == [job_id]


def test_a_session_that_waits_is_announced_changed_and_cancelled(
    portal: Instance, page: Page, visit: Callable[[str], Visitor]
) -> None:
    user = visit(USER)
    user.leave()
    page.context.grant_permissions(["notifications"])
    with portal.gpus_taken():
        assert user.start(gpus=4).status_code == 202
        log_in(page, portal, USER, to=f"/hub/spawn-pending/{USER}")
        press(page, page.get_by_role("button", name="Notify me when it is ready"))
        expect(page.get_by_text("Your browser will tell you")).to_be_visible()
        press(page, page.get_by_role("button", name="Change"))
        # The form again, with what had been chosen; the old job is gone.
        expect(page.get_by_role("radio", name=re.compile("^4 GPUs"))).to_be_checked()
        until(lambda: portal.jobs(user=USER) == [], seconds=30, what="the job is gone")

        assert user.start(gpus=4).status_code == 202
        page.goto(f"{portal.url}/hub/spawn-pending/{USER}")
        press(page, page.get_by_role("button", name="Cancel"))
        expect(page.locator("#again")).to_be_visible()
        until(lambda: portal.jobs(user=USER) == [], seconds=30, what="the job is gone")
        press(page, page.locator("#again"))
        expect(page.get_by_role("radio", name=re.compile("^1 GPU"))).to_be_visible()
