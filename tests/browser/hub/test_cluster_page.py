"""The cluster page in a real browser: two users and an admin at once."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, expect

from tests import faults
from tests.browser.fit import assert_is_fit_to_use
from tests.browser.lab import log_in
from tests.instance import ADMIN, USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.browser
ONE, TWO = USERS[:2]


@contextmanager
def browser_of(chromium: Browser, portal: Instance, name: str, width: int = 1280) -> Iterator[Page]:
    """Open the page as somebody, in a browser of their own."""
    context = chromium.new_context(viewport={"width": width, "height": 860})
    page = context.new_page()
    faults_seen: list[str] = []
    page.on("pageerror", lambda error: faults_seen.append(str(error)))
    log_in(page, portal, name, to="/services/cluster/")
    expect(page.get_by_role("heading", name="Cluster", exact=True)).to_be_visible()
    expect(page.get_by_text("· live")).to_be_visible()
    yield page
    assert faults_seen == []
    context.close()


def squares(page: Page, meaning: str) -> Locator:
    """Find squares as somebody does who hears the page."""
    return page.get_by_role("listitem").filter(
        has_text=re.compile(rf"^\W*GPU \d+, V100: {meaning}")
    )


def table(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title)


def test_two_users_see_their_own_live_and_an_admin_stops_a_session(
    portal: Instance,
    chromium: Browser,
    visit: Callable[[str], Visitor],
    photograph: Callable[[Page, str], None],
) -> None:
    user = visit(ONE)
    with (
        browser_of(chromium, portal, ONE) as one,
        browser_of(chromium, portal, TWO, width=360) as two,
        browser_of(chromium, portal, ADMIN) as admin,
    ):
        for page in (one, two, admin):
            expect(squares(page, "free")).to_have_count(12)
        # The pages are left alone: what changes comes to them.
        one.evaluate("window.isTheSamePage = true")
        job_id = user.start_and_wait(gpus=2)
        expect(squares(one, "yours")).to_have_count(2)
        expect(squares(two, "in use")).to_have_count(2)
        expect(squares(admin, f"in use, {ONE}")).to_have_count(2)
        expect(two.get_by_text(ONE)).to_have_count(0)
        expect(table(one, "My jobs").get_by_role("row", name=re.compile(job_id))).to_be_visible()
        expect(table(two, "My jobs")).to_contain_text("no jobs")
        assert one.evaluate("window.isTheSamePage") is True

        # Somebody else's job waits, and says why to those who may know whose it is.
        with portal.gpus_taken(2), waiting_job(portal, TWO):
            expect(table(two, "Waiting")).to_contain_text("no node has")
            expect(table(one, "Waiting")).to_contain_text("somebody else")
            expect(table(admin, "Waiting")).to_contain_text(TWO)
            photograph(one, "cluster")
            photograph(two, "cluster-narrow")
            photograph(admin, "cluster-admin")
            assert two.evaluate("document.documentElement.scrollWidth") == 360
            # The checker is a foreign script, which the page itself would not run.
            checked = chromium.new_context(
                bypass_csp=True, storage_state=admin.context.storage_state()
            ).new_page()
            checked.goto(f"{portal.url}/services/cluster/")
            assert_is_fit_to_use(checked, "cluster page")
            checked.context.close()

        # By keyboard: one partition, and back to all.
        chip = one.get_by_role("button", name=re.compile("^sxm2"))
        chip.press("Enter")
        expect(chip).to_have_attribute("aria-pressed", "true")
        one.keyboard.press("Enter")
        expect(chip).to_have_attribute("aria-pressed", "false")

        questions: list[str] = []

        def agree(dialog: Dialog) -> None:
            questions.append(dialog.message)
            dialog.accept()

        admin.on("dialog", agree)
        admin.get_by_role("button", name=f"Stop the session of {ONE}").click()
        expect(admin.get_by_role("heading", name="Sessions")).to_be_visible()
        until(lambda: not portal.jobs(user=ONE), seconds=60, what="the session is stopped")
        (question,) = questions
        assert f"{ONE}'s session (job {job_id})" in question
        assert "Unsaved work" in question
        expect(squares(one, "yours")).to_have_count(0)
        assert one.evaluate("window.isTheSamePage") is True


@contextmanager
def waiting_job(portal: Instance, user: str) -> Iterator[None]:
    argv = ["sbatch", "--parsable", "--gres=gpu:4", "--mem=1G", "--time=10", "--output=/dev/null"]
    job_id = portal.slurm(*argv, "--wrap=exec sleep 600", user=user).strip()
    try:
        yield
    finally:
        portal.cancel(job_id)


def test_the_page_can_be_read_without_its_script_and_outlives_a_restart(
    portal: Instance, chromium: Browser
) -> None:
    with browser_of(chromium, portal, ONE) as page:
        faults.restart_hub(portal)
        # The service is the hub's, so it was away too; its login is renewed without a word.
        expect(page.get_by_text("· live")).to_be_visible(timeout=60_000)
        with faults.drained(portal):
            expect(squares(page, "out of service")).to_have_count(12)
        expect(squares(page, "free")).to_have_count(12)
        cookies = page.context.storage_state()
    plain = chromium.new_context(java_script_enabled=False, storage_state=cookies)
    page = plain.new_page()
    page.goto(f"{portal.url}/services/cluster/")
    expect(page.get_by_text("of 12 GPUs free")).to_be_visible()
    expect(squares(page, "free")).to_have_count(12)
    plain.close()


def test_anybody_finds_out_how_much_storage_gpus_need_without_a_script(
    portal: Instance, chromium: Browser, photograph: Callable[[Page, str], None]
) -> None:
    with browser_of(chromium, portal, ONE) as one:
        expect(one.get_by_role("link", name="Cluster")).to_be_visible()
        expect(one.get_by_role("link", name="Storage sizing")).to_have_count(0)
        one.goto(f"{portal.url}/services/cluster/sizing")
        expect(one.get_by_role("heading", name="Storage sizing", exact=True)).to_be_visible()
        photograph(one, "sizing")
        cookies = one.context.storage_state()
    plain = chromium.new_context(java_script_enabled=False, storage_state=cookies)
    page = plain.new_page()
    page.goto(f"{portal.url}/services/cluster/sizing")
    page.get_by_label("GPUs", exact=True).fill("72")
    page.get_by_label("Model and work").select_option("Inception v4, training")
    page.get_by_label("Images", exact=True).select_option("large, 1.3 MB each")
    page.get_by_role("button", name="Calculate").press("Enter")
    row = page.get_by_role("row", name="The storage must give")
    expect(row).to_contain_text("21,600 MB/s")
    expect(page.get_by_role("row", name="Storage nodes")).to_contain_text("8.0: 9 GPUs a node")
    # The address is the question, for a link in a mail.
    assert "gpus=72" in page.url
    page.get_by_label("Card").select_option("another card")
    page.get_by_role("button", name="Calculate").click()
    speed = page.get_by_label("Speed of one GPU")
    expect(speed).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("alert")).to_contain_text("marked field")
    speed.fill("2500")
    page.get_by_role("button", name="Calculate").click()
    # 2,500 images of 1.3 MB from 72 GPUs.
    expect(row).to_contain_text("234,000 MB/s")
    asked = page.url
    plain.close()
    # The checker is a foreign script, which the page itself would not run.
    checked = chromium.new_context(bypass_csp=True, storage_state=cookies).new_page()
    for address in (asked, f"{portal.url}/services/cluster/sizing?gpus=none"):
        checked.goto(address)
        assert_is_fit_to_use(checked, "sizing")
    checked.context.close()
