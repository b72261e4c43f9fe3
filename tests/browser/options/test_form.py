"""The options form in a real browser: by keyboard, on a phone, without its script, and live."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.lab import log_in
from tests.instance import USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.waits]

USER = USERS[1]


@pytest.fixture(autouse=True)
def clean_user(portal: Instance) -> Iterator[None]:
    """A user without a session, before and after, and without an earlier choice."""
    visitor = Visitor(portal, USER)
    visitor.log_in()
    visitor.leave()
    yield
    visitor.leave()
    visitor.close()


def open_form(page: Page, portal: Instance, query: str = "?opt-gpus=1&opt-partition=sxm2") -> None:
    log_in(page, portal, USER, to=f"/hub/spawn{query}")


def test_the_forecast_follows_the_choice(
    portal: Instance, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    with portal.gpus_taken():
        open_form(page, portal)
        forecast = page.locator("#gpu-form-forecast")
        expect(forecast).to_have_attribute("data-state", "later")
        expect(forecast).to_contain_text(re.compile(r"\d+ minutes\)\.$"))
        waiting = page.get_by_role("radio", name=re.compile("^2 GPUs.*busy now"))
        expect(waiting).to_be_attached()
        photograph(page, "forecast")
        page.get_by_role("radio", name=re.compile("^No GPU")).check(force=True)
        expect(forecast).to_have_attribute("data-state", "now")
        page.get_by_label("Session time in hours").fill("99")
        expect(forecast).to_have_attribute("data-state", "refused")
        expect(forecast).to_contain_text("12 hours")


def test_what_is_free_is_refreshed_without_a_reload(portal: Instance, page: Page) -> None:
    open_form(page, portal)
    row = page.locator("#gpu-form-cluster tr").first
    expect(row).to_contain_text("12 of 12")
    page.evaluate("window.isTheSamePage = true")
    with portal.gpus_taken(nodes=2):
        expect(row).to_contain_text("4 of 12")
    expect(row).to_contain_text("12 of 12")
    assert page.evaluate("window.isTheSamePage")


def test_a_link_that_asks_too_much_says_what_stands_instead(
    portal: Instance, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    open_form(page, portal, "?gpus=99&partition=dgx2&hours=48")
    said = page.locator("#gpu-form-not-taken p")
    expect(said).to_have_count(3)
    for sentence, asked in enumerate(("dgx2", "99 GPUs", "48 hours")):
        expect(said.nth(sentence)).to_contain_text(asked)
    expect(page.get_by_role("radio", name=re.compile("^1 GPU "))).to_be_checked()
    expect(page.get_by_label("Partition")).to_have_value("sxm2")
    expect(page.get_by_label("Session time in hours")).to_have_value("12")
    photograph(page, "link")


def test_partitions_of_the_same_nodes_are_one_row(portal: Instance, page: Page) -> None:
    open_form(page, portal)
    # Two partitions of the test cluster are open to the user, both of its three nodes.
    expect(page.locator("#gpu-form-partition option")).to_have_count(2)
    expect(page.locator("#gpu-form-cluster tr")).to_have_count(1)
    # And so they are when what is free is asked for again.
    with page.expect_response(re.compile("/availability")) as answered:
        pass
    answered.value.finished()
    expect(page.locator("#gpu-form-cluster tr")).to_have_count(1)


def test_a_session_is_chosen_and_started_by_keyboard_alone(portal: Instance, page: Page) -> None:
    open_form(page, portal)
    expect(page.get_by_role("radio", name=re.compile("^1 GPU"))).to_be_checked()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "gpus":
            break
    # Arrows move in a group of radio buttons; Tab leaves it.
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name=re.compile("^2 GPUs"))).to_be_checked()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "submit":
            break
    page.keyboard.press("Enter")
    (job_id,) = until(lambda: portal.jobs(user=USER), seconds=30, what="the job is there")
    assert portal.job(job_id)["TresPerNode"] == "gres:gpu:2"


def test_every_field_has_a_name_that_is_read_out(portal: Instance, page: Page) -> None:
    open_form(page, portal)
    expect(page.get_by_role("group", name=re.compile("^GPUs"))).to_be_visible()
    expect(page.get_by_role("radio", name=re.compile("^3 GPUs 24 cores 144 GiB"))).to_be_attached()
    expect(page.get_by_role("spinbutton", name="Session time in hours")).to_be_visible()
    expect(page.get_by_role("combobox", name="Partition")).to_be_visible()
    forecast = page.get_by_role("status").and_(page.locator('[data-state="now"]'))
    expect(forecast).to_be_visible()


def test_it_fits_a_phone(
    portal: Instance, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    open_form(page, portal)
    expect(page.locator("#gpu-form-forecast")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    photograph(page, "phone")


def test_without_javascript_it_is_a_form_that_submits(portal: Instance, chromium: Browser) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    open_form(page, portal)
    page.locator('input[name="gpus"][value="2"]').check(force=True)
    page.get_by_role("button", name="Start").click()
    (job_id,) = until(lambda: portal.jobs(user=USER), seconds=30, what="the job is there")
    assert portal.job(job_id)["TresPerNode"] == "gres:gpu:2"
    context.close()
