"""Home: what a session holds and until when, what the last ones were, and the way out."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from jupyterhub_gpu_slurm.session.endings import BECAUSE
from jupyterhub_gpu_slurm.session.observation import Ending
from tests import faults
from tests.browser.fit import assert_is_fit_to_use
from tests.browser.lab import log_in
from tests.instance import FILLER, USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.browser

USER = USERS[3]
# How far apart the two closest buttons of a group are, in pixels: beside or above each other.
NEAREST = """
group => {
  const boxes = [...group.children].map(one => one.getBoundingClientRect());
  const seen = boxes.filter(box => box.width);
  const across = (one, other) => Math.max(other.left - one.right, one.left - other.right);
  const down = (one, other) => Math.max(other.top - one.bottom, one.top - other.bottom);
  const apart = (one, other) => Math.max(across(one, other), down(one, other));
  const pairs = seen.flatMap((one, at) => seen.slice(at + 1).map(other => apart(one, other)));
  return Math.min(...pairs);
}
"""

# Where a button is, and where it was when it could first be pressed, in pixels.
PLACE = "button => { const box = button.getBoundingClientRect(); return [box.left, box.top]; }"
ENABLED_AT = f"""
addEventListener("DOMContentLoaded", () => {{
  const button = document.getElementById("cancel");
  if (button === null) return;
  const place = {PLACE};
  const note = () => {{ button.enabledAt ??= place(button); }};
  new MutationObserver(note).observe(button, {{ attributeFilter: ["disabled"] }});
}});
"""


@pytest.fixture
def user(visit: Callable[[str], Visitor]) -> Visitor:
    user = visit(USER)
    user.leave()
    return user


def test_home_is_a_card_of_the_session_and_lists_the_last_ones(
    portal: Instance, page: Page, user: Visitor, photograph: Callable[[Page, str], None]
) -> None:
    job_id = user.start_and_wait(gpus=2, hours=1)
    log_in(page, portal, USER, to="/hub/home")
    page.wait_for_function("window._jupyterhub_page_loaded")
    expect(page.locator("#state")).to_have_text("Running")
    expect(page.locator("[data-fact=gpus]")).to_have_text(re.compile(r"^2 GPUs \([A-Z][\w ]+\)$"))
    expect(page.locator("[data-fact=node]")).to_have_text(portal.job(job_id)["NodeList"])
    expect(page.locator("[data-left]")).to_have_text(re.compile("^5[0-9] min$"))
    use = page.locator("[data-use='']")
    # The papers' name for it is kept where the pointer is.
    expect(page.locator("#start")).to_have_attribute("title", "My Server")
    expect(page.locator("#stop")).to_have_attribute("title", re.compile("^Stop My Server"))
    expect(use).to_have_text(re.compile(r"^[\d.]+ of \d+ cores, 0\.[1-9] of [\d.]+ GiB$"))
    photograph(page, "home-card")
    assert_is_fit_to_use(page, "home with a session")

    # More time, without JupyterLab; once, however often it is clicked.
    page.get_by_label("Extend by").select_option("60")
    page.get_by_role("button", name="Extend", exact=True).dblclick()
    expect(page.locator("[data-left]")).to_have_text(re.compile("^1 h 5[0-9] min$"))
    assert portal.job(job_id)["TimeLimit"] == "02:00:00"

    for scheme in ("light", "dark"):
        for width, height in ((1440, 900), (360, 740)):
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme)
            page.reload()
            expect(page.locator("[data-left]")).not_to_have_text("—")
    page.wait_for_function("window._jupyterhub_page_loaded")
    # Where there is no room for both in a row, the way in comes first.
    opening, stop = (page.locator(which).bounding_box() for which in ("#start", "#stop"))
    assert opening is not None
    assert stop is not None
    assert opening["y"] + opening["height"] <= stop["y"]

    # It is listed once it has ended, and can be started again as it was.
    page.locator("#stop").click()
    expect(page.locator("#state")).to_have_text("Not running")
    last = page.locator("#past").get_by_role("listitem").first
    expect(last).to_contain_text("2 GPUs on")
    expect(last).to_contain_text(BECAUSE[Ending.STOPPED])
    photograph(page, "home-past")
    last.get_by_role("button", name="Start again").click()
    page.wait_for_url(re.compile(f"/user/{USER}/lab"), timeout=90_000)
    (again,) = portal.jobs(user=USER)
    job = portal.job(again)
    assert (job["TresPerNode"], job["TimeLimit"]) == ("gres:gpu:2", "01:00:00")


def test_home_sees_what_becomes_of_a_session_elsewhere(
    portal: Instance, page: Page, user: Visitor
) -> None:
    with portal.gpus_taken():
        assert user.start(gpus=4).status_code == 202
        log_in(page, portal, USER, to="/hub/home")
        expect(page.locator("#state")).to_have_text("Starting")
    # The page is left alone.
    expect(page.locator("#state")).to_have_text("Running", timeout=90_000)
    left = page.locator("[data-left]")
    end = left.get_attribute("data-left") or ""
    more = {"server": "", "minutes": "60", "_xsrf": user.xsrf()}
    assert user.http.post("/hub/portal/extend", data=more).status_code == 200
    expect(left).not_to_have_attribute("data-left", end, timeout=60_000)
    user.stop()
    expect(page.locator("#state")).to_have_text("Not running", timeout=60_000)
    expect(page.locator("[data-left]")).to_have_count(0)


def test_a_stop_that_failed_is_not_said_to_go_on(
    portal: Instance, page: Page, user: Visitor
) -> None:
    user.start_and_wait(gpus=0)
    log_in(page, portal, USER, to="/hub/home")
    page.wait_for_function("window._jupyterhub_page_loaded")

    def fail(route: Route) -> None:
        if route.request.method == "DELETE":
            route.fulfill(status=503, json={"message": "Not now."})
        else:
            route.continue_()

    page.route("**/hub/api/users/**", fail)
    page.locator("#stop").click()
    expect(page.get_by_role("dialog")).to_contain_text("Not now.")
    expect(page.locator("#state")).to_have_text("Running")
    page.unroute("**/hub/api/users/**")
    page.reload()
    page.wait_for_function("window._jupyterhub_page_loaded")
    page.locator("#stop").click()
    expect(page.locator("#state")).to_have_text("Not running")


def test_more_time_is_taken_from_the_page_only(portal: Instance, user: Visitor) -> None:
    job_id = user.start_and_wait(gpus=0, hours=1)
    asked = {"server": "", "minutes": "60"}
    assert user.http.post("/hub/portal/extend", data=asked).status_code == 403
    assert portal.job(job_id)["TimeLimit"] == "01:00:00"
    user.http.get("/hub/home")
    allowed = {**asked, "_xsrf": user.xsrf()}
    assert user.http.post("/hub/portal/extend", data={**allowed, "server": "x"}).status_code == 409
    assert user.http.post("/hub/portal/extend", data=allowed).status_code == 200
    assert portal.job(job_id)["TimeLimit"] == "02:00:00"


def test_a_logout_asks_once_whether_the_session_is_still_needed(
    portal: Instance, page: Page, user: Visitor, photograph: Callable[[Page, str], None]
) -> None:
    user.start_and_wait(gpus=1, hours=1)
    log_in(page, portal, USER, to="/hub/home")
    page.get_by_role("link", name="Log out").click()
    expect(page.get_by_text("1 GPU stays reserved")).to_be_visible()
    photograph(page, "leave")
    assert_is_fit_to_use(page, "leave")
    page.locator("#leave").click()
    expect(page.get_by_label("Username")).to_be_visible()
    assert len(portal.jobs(user=USER)) == 1

    user.at("second").start_and_wait(gpus=1, hours=1)
    log_in(page, portal, USER, to="/hub/home")
    page.get_by_role("link", name="Log out").click()
    expect(page.get_by_text("If you keep them, 2 GPUs stay reserved")).to_be_visible()
    assert_is_fit_to_use(page, "leave two sessions")
    page.locator("#stop-and-leave").click()
    expect(page.get_by_label("Username")).to_be_visible()
    until(lambda: not portal.jobs(user=USER), seconds=30, what="the jobs are gone")
    # Nobody is asked who has none.
    log_in(page, portal, USER, to="/hub/home")
    page.get_by_role("link", name="Log out").click()
    expect(page.get_by_label("Username")).to_be_visible()


def test_a_page_says_that_a_session_is_still_stopping(
    portal: Instance, page: Page, user: Visitor
) -> None:
    user.start_and_wait(gpus=0)
    log_in(page, portal, USER, to="/hub/home")
    with faults.frozen("slurmctld"):
        assert user.api("DELETE", f"/users/{USER}/server").status_code == 202
        page.goto(f"{portal.url}/hub/spawn-pending/{USER}")
        expect(page.get_by_role("heading", name="Your session is stopping")).to_be_visible()
        # Without the reload, in the middle of which nothing can be looked at.
        page.evaluate("for (let timer = setTimeout(() => {}); timer; timer--) clearTimeout(timer)")
        assert_is_fit_to_use(page, "stopping")
    page.get_by_role("button", name="Refresh now").click()
    until(lambda: user.server() is None, seconds=60, what="the session has stopped")


def test_a_page_shows_for_a_moment_that_a_session_starts_again(
    portal: Instance, page: Page, user: Visitor
) -> None:
    job_id = user.start_and_wait(gpus=0, hours=1)
    user.stop()
    asked = {"Referer": f"{portal.url}/user/{USER}/lab"}
    said = user.http.get(f"/hub/portal/session/{job_id}", headers=asked).json()
    again = f"/hub/portal/start-again/{job_id}?token={said['token']}"
    page.add_init_script("HTMLFormElement.prototype.submit = () => {}")
    log_in(page, portal, USER, to="/hub/home")
    page.goto(f"{portal.url}{again}")
    expect(page.get_by_role("heading", name="starting again")).to_be_visible()
    assert_is_fit_to_use(page, "starting again")


def test_who_logs_out_can_stop_what_still_waits(
    portal: Instance, page: Page, user: Visitor
) -> None:
    with portal.gpus_taken():
        log_in(page, portal, USER, to=f"/hub/spawn/{USER}?gpus=4")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("status").first).to_contain_text("PENDING")
        page.get_by_role("link", name="Log out").click()
        expect(page.get_by_text("4 GPUs stay reserved")).to_be_visible()
        page.locator("#stop-and-leave").click()
        expect(page.get_by_label("Username")).to_be_visible()
        until(lambda: not portal.jobs(user=USER), seconds=15, what="the job is gone")


def test_a_start_shows_what_was_asked_for_and_can_be_changed(
    portal: Instance, page: Page, user: Visitor, photograph: Callable[[Page, str], None]
) -> None:
    ahead = ["sbatch", "--parsable", "--gres=gpu:4", "--mem=1G", "--time=30", "--output=/dev/null"]
    with portal.gpus_taken():
        first = portal.slurm(*ahead, "--wrap=exec sleep 1", user=FILLER).strip()
        log_in(page, portal, USER, to=f"/hub/spawn/{USER}")
        page.get_by_role("radio", name=re.compile("^4 GPUs")).check(force=True)
        page.get_by_label("Session time in hours").fill("8")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.locator("#progress-asked")).to_have_text(re.compile(r"^4 .*GPUs for \d+ h"))
        expect(page.get_by_role("status").first).to_contain_text("PENDING")
        expect(page.locator("#progress-position")).to_have_text("2 of 2 in sxm2, by priority")
        expect(page).to_have_title(re.compile("^2 of 2 · Waiting · "))
        expect(page.locator("#progress-log")).to_contain_text("Session requested")
        expect(page.locator("#progress-log")).not_to_contain_text("Server")
        assert_is_fit_to_use(page, "waiting, one of two")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for width, height in ((360, 740), (1440, 900)):
                page.set_viewport_size({"width": width, "height": height})
                assert page.locator(".portal-buttons").evaluate(NEAREST) >= 8
        photograph(page, "waiting-asked")

        portal.slurm("scancel", first)
        expect(page.locator("#progress-position")).to_have_text("1 of 1 in sxm2, by priority")
        expect(page).to_have_title(re.compile("^1 of 1 · Waiting · "))

        # The form again, as the browser keeps it: it leads here, not to an error.
        page.go_back()
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.locator("#progress-asked")).to_have_text(re.compile("^4 .*GPUs"))
        assert len(portal.jobs(user=USER)) == 1

        page.get_by_role("button", name="Change").click()
        expect(page.get_by_role("radio", name=re.compile("^4 GPUs"))).to_be_checked()
        until(lambda: not portal.jobs(user=USER), seconds=15, what="the job is gone")
        page.get_by_role("radio", name=re.compile("^No GPU")).check(force=True)
        page.get_by_role("button", name="Start", exact=True).click()
        page.wait_for_url(re.compile(f"/user/{USER}/lab"), timeout=90_000)


@pytest.mark.parametrize("width", [360, 1440])
def test_no_button_moves_while_one_waits(
    portal: Instance, page: Page, user: Visitor, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.add_init_script(ENABLED_AT)
    with portal.gpus_taken(nodes=2), portal.gpus_taken(nodes=1, gpus=3):
        log_in(page, portal, USER, to=f"/hub/spawn/{USER}?gpus=4")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.locator("#progress-position")).to_contain_text(" of ")
        expect(page.locator("#fewer")).to_contain_text("1 GPU is free now")
        page.locator("#notify").click()
        expect(page.locator("#notify")).to_be_disabled()
        cancel = page.locator("#cancel")
        assert cancel.evaluate("button => button.enabledAt") == cancel.evaluate(PLACE)


def test_who_waits_is_offered_what_is_free_now(
    portal: Instance, page: Page, user: Visitor, photograph: Callable[[Page, str], None]
) -> None:
    with portal.gpus_taken(nodes=2), portal.gpus_taken(nodes=1, gpus=3):
        log_in(page, portal, USER, to=f"/hub/spawn/{USER}?gpus=4&hours=1.5")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("status").first).to_contain_text("PENDING")
        expect(page.locator("#fewer")).to_contain_text("1 GPU is free now")
        photograph(page, "waiting-fewer")
        page.locator("#fewer").click()
        expect(page.get_by_role("radio", name=re.compile("^1 GPU"))).to_be_checked()
        expect(page.get_by_label("Session time in hours")).to_have_value("1.5")
        page.get_by_role("button", name="Start", exact=True).click()
        page.wait_for_url(re.compile(f"/user/{USER}/lab"), timeout=90_000)


def test_who_cannot_be_notified_is_told_so(portal: Instance, page: Page, user: Visitor) -> None:
    page.add_init_script("Object.defineProperty(window, 'isSecureContext', { value: false });")
    with portal.gpus_taken():
        log_in(page, portal, USER, to=f"/hub/spawn/{USER}?gpus=1")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("status").first).to_contain_text("PENDING")
        expect(page.locator("#notify")).to_be_hidden()
        expect(page.locator("#notify-words")).to_contain_text("HTTPS")
        page.get_by_role("button", name="Cancel").click()
        expect(page).to_have_title(re.compile("^Cancelled · "))


def test_a_session_that_is_ready_tells_a_user_who_asked_for_it(
    portal: Instance, page: Page, user: Visitor
) -> None:
    page.context.grant_permissions(["notifications"], origin=portal.url)
    page.add_init_script(
        """
        document.hasFocus = () => false;
        const told = (title) => localStorage.setItem("told", title);
        window.Notification = class {
          static permission = "granted";
          static requestPermission = async () => "granted";
          constructor(title) { told(title); }
        };
        """
    )
    with portal.gpus_taken():
        log_in(page, portal, USER, to=f"/hub/spawn/{USER}")
        page.get_by_role("radio", name=re.compile("^1 GPU")).check(force=True)
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("status").first).to_contain_text("PENDING")
        page.locator("#notify").click()
        expect(page.locator("#notify")).to_be_disabled()
    page.wait_for_url(re.compile(f"/user/{USER}/lab"), timeout=90_000)
    page.goto(f"{portal.url}/hub/home")
    assert page.evaluate("localStorage.getItem('told')") == "Your session is ready"
