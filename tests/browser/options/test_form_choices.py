"""What a site's settings add to the form, in a real browser and a real job.

Accounts and QOS need a slurmdbd, which the test instance's Slurm does not have: there is one in
`tests/integration/options/test_accounts.py`, and `test_form_script` shows them in a browser.
"""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.lab import log_in
from tests.instance import LIMITED, USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.browser


@pytest.fixture
def clean_user(portal: Instance) -> Iterator[Visitor]:
    """A user without a session, before and after, and without an earlier choice."""
    visitor = Visitor(portal, LIMITED)
    visitor.log_in()
    visitor.leave()
    yield visitor
    visitor.leave()
    visitor.close()


@pytest.fixture
def node(portal: Instance, clean_user: Visitor) -> Iterator[str]:
    """A node that has a feature, for the time of a test, which the hub knows."""
    name = portal.slurm("sinfo", "--noheader", "-N", "-o", "%N").split()[0]

    def set_features(features: str) -> None:
        change = [f"AvailableFeatures={features}", f"ActiveFeatures={features}"]
        portal.slurm("scontrol", "update", f"NodeName={name}", *change)

    def is_known() -> bool:
        asked = {"gpus": 2, "hours": 1, "constraint": "nvlink"}
        answer = clean_user.api("GET", f"/gpu-session/forecast/{LIMITED}", params=asked)
        return bool(answer.raise_for_status().json()["state"] == "now")

    set_features("nvlink")
    until(is_known, seconds=60, what="the hub has looked at the nodes again")
    yield name
    set_features("")


def test_a_named_size_with_a_node_feature_becomes_the_job(
    portal: Instance,
    node: str,
    page: Page,
    photograph: Callable[[Page, str], None],
) -> None:
    log_in(page, portal, LIMITED, to="/hub/spawn")
    page.get_by_label("Node feature").select_option("")
    page.get_by_role("link", name=re.compile("^Course")).click()
    expect(page.get_by_label("Node feature")).to_have_value("nvlink")
    expect(page.get_by_label("Session time in hours")).to_have_value("1")
    expect(page.get_by_role("radio", name=re.compile("^2 GPUs"))).to_be_checked()
    expect(page.locator("#gpu-form-forecast")).to_have_attribute("data-state", "now")
    photograph(page, "choices")
    page.get_by_role("button", name="Start").click()
    (job_id,) = until(lambda: portal.jobs(user=LIMITED), seconds=30, what="the job is there")
    job = portal.job(job_id)
    assert (job["Features"], job["TimeLimit"]) == ("nvlink", "01:00:00")
    until(lambda: portal.job(job_id)["NodeList"] == node, seconds=30, what=f"it is on {node}")


def test_a_named_size_is_a_link_that_fills_in_the_form(
    portal: Instance, node: str, page: Page
) -> None:
    log_in(page, portal, LIMITED, to="/hub/spawn")
    link = page.get_by_role("link", name=re.compile("^Course")).get_attribute("href")
    page.goto(f"{page.url.partition('?')[0]}{link}")
    expect(page.get_by_label("Node feature")).to_have_value("nvlink")
    expect(page.get_by_label("Session time in hours")).to_have_value("1")
    assert not portal.jobs(user=LIMITED)


@pytest.fixture
def reserved(portal: Instance, clean_user: Visitor) -> Iterator[str]:
    """A node that a reservation keeps for the user."""
    name = portal.slurm("sinfo", "--noheader", "-N", "-o", "%N").split()[-1]
    told = ("StartTime=now", "Duration=60", f"Nodes={name}", f"Users={LIMITED}")
    portal.slurm("scontrol", "create", "reservation", "ReservationName=course", *told)
    yield name
    clean_user.leave()
    portal.slurm("scontrol", "delete", "ReservationName=course")


def test_a_reservation_that_is_chosen_becomes_the_jobs(
    portal: Instance, reserved: str, page: Page
) -> None:
    log_in(page, portal, LIMITED, to="/hub/spawn")
    # The last choice is proposed again; the node that is reserved has no feature.
    page.get_by_label("Node feature").select_option("")
    page.get_by_label("Reservation").select_option("course")
    # What is free for others says nothing of the reservation.
    expect(page.locator(".gpu-form-now").first).to_have_text("")
    page.get_by_role("button", name="Start").click()
    (job_id,) = until(lambda: portal.jobs(user=LIMITED), seconds=30, what="the job is there")
    assert portal.job(job_id)["Reservation"] == "course"
    until(lambda: portal.job(job_id)["NodeList"] == reserved, seconds=30, what="it has its node")


def test_others_see_nothing_of_it(portal: Instance, page: Page) -> None:
    log_in(page, portal, USERS[0], to="/hub/spawn")
    expect(page.get_by_label("Session time in hours")).to_be_visible()
    expect(page.get_by_label("Node feature")).to_have_count(0)
    expect(page.get_by_label("Reservation")).to_have_count(0)
    expect(page.get_by_label("Account")).to_have_count(0)
    expect(page.get_by_role("link", name=re.compile("^Course"))).to_have_count(0)
