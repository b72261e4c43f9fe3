"""JupyterHub's admin page, as an admin of the portal uses it."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from jupyterhub_gpu_slurm.options.policy import Defaults
from tests import faults
from tests.browser.lab import log_in
from tests.instance import ADMIN, USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.browser

USER, OTHER = USERS[2], USERS[3]
CONTROLS = "#react-admin-hook :is(button, input, textarea, a, [role=button])"


@pytest.fixture
def newcomer(portal: Instance) -> Iterator[str]:
    """Somebody whom the hub does not know yet, nor afterwards."""
    admin = Visitor(portal, ADMIN)
    admin.log_in()
    forget(portal, admin, USER)
    yield USER
    forget(portal, admin, USER)
    admin.close()


def forget(portal: Instance, admin: Visitor, name: str) -> None:
    admin.api("DELETE", f"/users/{name}/server")
    until(lambda: not portal.jobs(user=name), seconds=30, what=f"no job of {name}")
    until(
        lambda: admin.api("DELETE", f"/users/{name}").status_code in (204, 404),
        seconds=30,
        what=f"{name} is forgotten",
    )


def answer_next_question(page: Page, *, yes: bool) -> list[str]:
    """Answer the question that the next click brings; give what was asked, once it is."""
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        if yes:
            dialog.accept()
        else:
            dialog.dismiss()

    page.once("dialog", answer)
    return asked


def open_panel(page: Page, portal: Instance) -> None:
    log_in(page, portal, ADMIN, to="/hub/admin")
    expect(row(page, ADMIN)).to_be_visible()


def row(page: Page, name: str) -> Locator:
    return page.get_by_test_id(f"user-row-{name}")


def visible(page: Page) -> set[str]:
    """Return the names of all that can be clicked or typed into."""
    names = "parts => parts.filter(one => one.checkVisibility()).map(one => one.ariaLabel"
    names += " || one.labels?.[0]?.textContent || one.textContent.trim())"
    return {name for name in page.locator(CONTROLS).evaluate_all(names) if name}


def test_a_user_is_added_gets_a_session_loses_it_and_is_deleted(
    portal: Instance, page: Page, newcomer: str
) -> None:
    open_panel(page, portal)
    expect(row(page, newcomer)).to_have_count(0)
    page.get_by_role("button", name="Add Users").click()
    page.get_by_label("Usernames, one per line").fill(newcomer)
    page.get_by_role("button", name="Add Users").click()
    row(page, newcomer).get_by_role("button", name="Start Session").click()
    (job_id,) = until(lambda: portal.jobs(user=newcomer), seconds=30, what="the session's job")
    job = portal.job(job_id)
    assert job["UserId"].startswith(f"{newcomer}(")
    assert job["TresPerNode"] == f"gres:gpu:{Defaults.gpus}"

    def is_ready() -> bool:
        page.reload()
        stop = row(page, newcomer).get_by_role("button", name="Stop Session")
        expect(row(page, newcomer)).to_be_visible()
        return stop.is_visible()

    until(is_ready, seconds=90, every=2, what="the session runs")
    assert portal.job(job_id)["JobState"] == "RUNNING"
    expect(row(page, newcomer).get_by_text("Access Session")).to_be_hidden()
    row(page, newcomer).get_by_role("button", name="Stop Session").click()
    until(lambda: not portal.jobs(user=newcomer), seconds=30, what="the job is gone")
    expect(row(page, newcomer).get_by_role("button", name="Start Session")).to_be_enabled()

    row(page, newcomer).get_by_role("button", name="Delete User").click()
    expect(page.get_by_role("heading", name=f"Delete user {newcomer}")).to_be_visible()
    asked = answer_next_question(page, yes=True)
    page.get_by_role("button", name="Delete user").click()
    expect(row(page, ADMIN)).to_be_visible()
    expect(row(page, newcomer)).to_have_count(0)
    assert len(asked) == 1
    assert asked[0].startswith("Delete")


def test_the_form_for_another_user_leads_back_to_the_panel(
    portal: Instance, page: Page, visit: Callable[[str], Visitor]
) -> None:
    visit(OTHER).leave()
    open_panel(page, portal)
    row(page, OTHER).get_by_role("button", name="Choose and Start").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Start a session for {OTHER}")
    page.get_by_role("radio", name=re.compile("^No GPU")).check(force=True)
    page.get_by_role("button", name="Start").click()
    expect(row(page, OTHER).get_by_role("button", name="Stop Session")).to_be_visible()
    (job_id,) = portal.jobs(user=OTHER)
    assert "TresPerNode" not in portal.job(job_id)


def test_nothing_is_offered_that_is_refused_or_harms_everybody(
    portal: Instance, page: Page, visit: Callable[[str], Visitor]
) -> None:
    visit(ADMIN).start_and_wait(gpus=0)
    visit(OTHER).leave()
    open_panel(page, portal)
    of_table = {"Sort by user", "Sort by last activity", "Only Active Sessions", "Search users"}
    of_table |= {"Shutdown Hub", "Add Users", "Previous", "Next", "Items per page"}
    of_rows = {"Start Session", "Stop Session", "Choose and Start", "Delete User"}
    users = {
        test_id.removeprefix("user-name-div-")
        for test_id in page.locator("[data-testid^=user-name-div-]").evaluate_all(
            "names => names.map(one => one.dataset.testid)"
        )
    }
    assert {ADMIN, OTHER} <= users
    details = {f"Details of {name}" for name in users}
    # Their own session is the admin's to open.
    assert visible(page) == of_table | of_rows | details | {"Access Session"}
    expect(row(page, ADMIN).get_by_text("Access Session")).to_be_visible()
    headers = page.locator("th:visible").all_inner_texts()
    expected = ["User", "Session", "Last Activity", "Session Start Time", "Actions"]
    assert [header.strip() for header in headers] == expected

    page.get_by_role("button", name="Add Users").click()
    expect(page.get_by_label("Usernames, one per line")).to_be_visible()
    assert visible(page) == {"Usernames, one per line", "Back", "Add Users"}
    page.get_by_role("button", name="Back").click()
    row(page, ADMIN).get_by_role("button", name="Delete User").click()
    expect(page.get_by_role("heading", name=f"Delete user {ADMIN}")).to_be_visible()
    assert visible(page) == {"Back", "Delete user"}


def test_the_users_are_sorted_with_the_keyboard(portal: Instance, page: Page) -> None:
    open_panel(page, portal)
    page.get_by_role("button", name="Sort by user").press("Enter")
    expect(page).to_have_url(re.compile("sort=name"))


def test_the_hub_is_shut_down_once_the_admin_is_sure(
    portal: Instance, page: Page, visit: Callable[[str], Visitor]
) -> None:
    job_id = visit(OTHER).start_and_wait(gpus=0)
    open_panel(page, portal)
    before = faults.pid_of("hub")
    asked = answer_next_question(page, yes=False)
    page.get_by_role("button", name="Shutdown Hub").click()
    assert len(asked) == 1
    assert asked[0].startswith("Shut down")
    # A request that was sent would have been answered by now.
    page.reload()
    expect(row(page, ADMIN)).to_be_visible()
    assert faults.pid_of("hub") == before

    answer_next_question(page, yes=True)
    page.get_by_role("button", name="Shutdown Hub").click()
    until(lambda: faults.pid_of("hub") != before, seconds=60, what="another hub runs")
    faults.wait_for_hub(portal)
    assert portal.job(job_id)["JobState"] == "RUNNING"
