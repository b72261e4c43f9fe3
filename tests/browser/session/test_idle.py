"""A session that nobody uses, as its user sees it."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from jupyterhub_gpu_slurm.session.endings import because
from jupyterhub_gpu_slurm.session.observation import Ending
from tests.browser import axe
from tests.browser.lab import log_in
from tests.instance import IDLER, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.waits]


def warning(page: Page) -> Locator:
    keep = page.get_by_role("button", name="Keep Session")
    return page.locator(".Toastify__toast").filter(has=keep)


def hold_post(route: Route, held: list[Route]) -> None:
    """Keep what a page says to the server; let the rest pass."""
    if route.request.method == "POST":
        held.append(route)
    else:
        route.continue_()


def open_lab(page: Page, portal: Instance, user: Visitor) -> None:
    """Open JupyterLab, which on a slow machine takes longer than the session may be unused."""
    log_in(page, portal, IDLER)

    def is_open() -> bool:
        user.session("POST", "/portal/idle").raise_for_status()
        return page.get_by_role("main").is_visible()

    until(is_open, seconds=90, every=1, what="JupyterLab is open")


def test_a_page_does_not_warn_of_a_session_that_is_used_elsewhere(
    portal: Instance, page: Page, visit: Callable[[str], Visitor]
) -> None:
    user = visit(IDLER)
    user.start_and_wait(gpus=1)
    open_lab(page, portal, user)
    # Longer than it may be unused; what the page was told at first is old by then.
    for _ in range(25):
        user.session("POST", "/portal/idle").raise_for_status()
        assert warning(page).count() == 0
        page.wait_for_timeout(1_000)


def test_a_warning_comes_and_goes_with_a_click_and_the_form_says_why_it_ended(
    portal: Instance,
    page: Page,
    visit: Callable[[str], Visitor],
    photograph: Callable[[Page, str], None],
) -> None:
    user = visit(IDLER)
    job_id = user.start_and_wait(gpus=1)
    open_lab(page, portal, user)

    expect(warning(page)).to_be_visible(timeout=40_000)
    expect(warning(page)).to_contain_text(re.compile(r"ends at \d.*GPUs"))
    # JupyterLab cuts long words off.
    expect(warning(page)).to_contain_text("to keep it.")
    # Nothing that takes long: nine seconds after the warning the session may end.
    held: list[Route] = []
    page.route(re.compile("/portal/idle"), lambda route: hold_post(route, held))
    warning(page).get_by_role("button", name="Keep Session").click()
    expect(warning(page)).to_have_count(0)
    # Until the server's answer comes, the page does not warn again.
    page.wait_for_timeout(1_500)
    expect(warning(page)).to_have_count(0)
    for route in held:
        route.continue_()
    page.unroute_all()
    assert portal.jobs(user=IDLER) == [job_id]

    # Left alone, it ends: the page is open all the while.
    expect(warning(page)).to_be_visible(timeout=40_000)
    photograph(page, "unused")
    assert axe.faults(page, ".Toastify__toast") == []
    until(lambda: not portal.jobs(user=IDLER), seconds=60, what="the unused session has ended")
    until(lambda: user.server() is None, seconds=30, what="the hub has seen the end")
    ended = page.get_by_role("dialog").filter(has_text="Your session has ended")
    expect(ended).to_contain_text(because(Ending.UNUSED, timedelta(seconds=18)))
    expect(warning(page)).to_have_count(0)
    page.goto(f"{portal.url}/hub/spawn/{IDLER}")
    expect(page.get_by_text("not been used for 18 s")).to_be_visible()
    photograph(page, "unused-ended")
