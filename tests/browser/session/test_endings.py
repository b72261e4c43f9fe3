"""What JupyterLab says when its session does not answer any more."""

import json
import pwd
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from jupyterhub_gpu_slurm.session.endings import BECAUSE
from jupyterhub_gpu_slurm.session.observation import Ending
from tests import faults
from tests.browser import axe
from tests.browser.fit import assert_dialog_is_fit
from tests.browser.keyboard import press
from tests.browser.lab import forget_screen, log_in, wait_for_notebook
from tests.browser.session.test_clock import EMPTY, time_left
from tests.instance import ADMIN, USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.waits]

USER = USERS[1]
NOTEBOOK = "endings-test.ipynb"


@pytest.fixture
def user(portal: Instance, visit: Callable[[str], Visitor]) -> Iterator[Visitor]:
    home = Path(pwd.getpwnam(USER).pw_dir)
    forget_screen(portal, USER)
    portal.slurm("/usr/bin/tee", str(home / NOTEBOOK), user=USER, stdin=json.dumps(EMPTY))
    user = visit(USER)
    user.leave()
    yield user
    portal.slurm("/bin/rm", "-f", str(home / NOTEBOOK), user=USER)


def open_notebook(page: Page, portal: Instance) -> None:
    log_in(page, portal, USER, to=f"/user/{USER}/lab/tree/{NOTEBOOK}")
    wait_for_notebook(page)
    expect(time_left(page)).to_be_visible()
    expect(use(page)).to_be_visible()
    expect(page.get_by_text(re.compile(r"\| Idle$"))).to_be_visible()
    # The kernel's language is written into it.
    page.keyboard.press("Control+s")
    expect(page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)


def dialog(page: Page) -> Locator:
    return page.get_by_role("dialog").filter(has_text="Your session has ended")


def use(page: Page) -> Locator:
    """What the status bar says of GPUs or CPU."""
    return page.get_by_role("button", name=re.compile(r"^(GPU|\d+ GPUs|CPU): "))


def notice(page: Page) -> Locator:
    return page.locator(".portal-Notice")


def test_a_lost_connection_says_so_and_closes_by_itself(
    portal: Instance, page: Page, user: Visitor, photograph: Callable[[Page, str], None]
) -> None:
    user.start_and_wait(gpus=0, hours=1)
    open_notebook(page, portal)
    page.context.set_offline(True)
    expect(notice(page)).to_contain_text("No connection")
    photograph(page, "offline")
    assert axe.faults(page, ".portal-Notice") == []
    page.wait_for_timeout(12_000)  # in which JupyterLab's own polls fail
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(notice(page)).to_have_count(1)
    page.context.set_offline(False)
    expect(notice(page)).to_have_count(0)
    expect(time_left(page)).to_be_visible()


def test_a_hub_that_does_not_tell_ends_nothing(portal: Instance, page: Page, user: Visitor) -> None:
    """As where the login at the portal is over, or somebody else looks into the session."""
    user.start_and_wait(gpus=0, hours=1)
    open_notebook(page, portal)
    page.route("**/hub/portal/session/*", lambda route: route.fulfill(status=403))
    page.route("**/portal/clock*", lambda route: route.abort())
    page.evaluate("window.dispatchEvent(new Event('online'))")
    expect(notice(page)).to_contain_text("log in to the portal", timeout=60_000)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(time_left(page)).to_be_visible()
    page.unroute("**/portal/clock*")
    page.unroute("**/hub/portal/session/*")
    expect(notice(page)).to_have_count(0)
    expect(time_left(page)).to_be_visible()


def test_what_was_asked_of_a_session_that_ended_meanwhile_is_no_second_error(
    portal: Instance, page: Page, user: Visitor
) -> None:
    user.start_and_wait(gpus=0, hours=1)
    open_notebook(page, portal)
    page.keyboard.press("Control+Shift+C")
    expect(page.locator("#modal-command-palette input")).to_be_focused()
    page.keyboard.type("Extend Session…")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").filter(has_text="Extend")).to_be_visible()
    user.stop()
    expect(dialog(page)).to_be_visible()
    expect(page.get_by_text("not extended")).to_have_count(0)


def test_a_session_that_an_admin_stopped_says_so_and_starts_again_at_its_notebook(
    portal: Instance,
    page: Page,
    user: Visitor,
    visit: Callable[[str], Visitor],
    photograph: Callable[[Page, str], None],
) -> None:
    job_id = user.start_and_wait(gpus=1, hours=1)
    open_notebook(page, portal)
    admin = visit(ADMIN)
    admin.api("DELETE", f"/users/{USER}/server").raise_for_status()
    expect(dialog(page)).to_be_visible()
    why = BECAUSE[Ending.STOPPED_BY_OTHER]
    expect(dialog(page)).to_contain_text(re.compile(rf"ended at \d.* {why}"))
    expect(dialog(page)).to_contain_text(re.compile(r"saved.* at \d"))
    photograph(page, "ended")
    # A session that is gone gives no other theme.
    assert_dialog_is_fit(page, "Your session has ended", ["light"])
    # Nothing counts any more, and what was said can be read again.
    expect(time_left(page)).to_have_count(0)
    expect(use(page)).to_have_count(0)
    press(page, dialog(page).get_by_role("button", name="Close"))
    page.keyboard.press("Escape")  # out of the cell, in which Tab indents
    press(page, page.get_by_role("button", name="Session ended"))
    press(page, dialog(page).get_by_role("button", name="Start Again"))

    # One click: the same choices, and the way back.
    until(lambda: portal.jobs(user=USER) not in ([], [job_id]), seconds=60, what="another job")
    wait_for_notebook(page)
    assert page.url.endswith(f"/lab/tree/{NOTEBOOK}")
    (again,) = portal.jobs(user=USER)
    assert again != job_id
    job = portal.job(again)
    assert (job["TresPerNode"], job["TimeLimit"]) == ("gres:gpu:1", "01:00:00")


def test_a_session_that_its_user_stopped_elsewhere_says_so(
    portal: Instance, page: Page, user: Visitor
) -> None:
    user.start_and_wait(gpus=0, hours=1)
    open_notebook(page, portal)
    user.stop()
    expect(dialog(page)).to_contain_text(BECAUSE[Ending.STOPPED])


def test_a_session_whose_job_was_cancelled_says_so(
    portal: Instance, page: Page, user: Visitor
) -> None:
    job_id = user.start_and_wait(gpus=0, hours=1)
    open_notebook(page, portal)
    portal.slurm("scancel", job_id)
    expect(dialog(page)).to_contain_text(BECAUSE[Ending.CANCELLED])


def test_a_session_that_used_too_much_memory_says_so(
    portal: Instance, page: Page, user: Visitor
) -> None:
    user.start_and_wait(gpus=0, hours=1)
    open_notebook(page, portal)
    user.run(faults.EXHAUST_MEMORY)
    expect(dialog(page)).to_contain_text(BECAUSE[Ending.OUT_OF_MEMORY], timeout=60_000)
    expect(dialog(page).get_by_role("button", name="Start Again")).to_be_visible()


def test_a_session_whose_node_failed_says_so(portal: Instance, page: Page, user: Visitor) -> None:
    node = portal.job(user.start_and_wait(gpus=0, hours=1))["NodeList"]
    open_notebook(page, portal)
    with faults.node_state(portal, node, "DOWN"):
        expect(dialog(page)).to_contain_text(BECAUSE[Ending.NODE_FAILED])


@pytest.mark.long
def test_a_session_whose_time_is_up_says_so(portal: Instance, page: Page, user: Visitor) -> None:
    job_id = user.start_and_wait(gpus=0, hours=1)
    open_notebook(page, portal)
    # Only now: to open it may take longer than this. Slurm looks for such jobs every half minute.
    portal.slurm("scontrol", "update", f"JobId={job_id}", "TimeLimit=1")
    expect(dialog(page)).to_contain_text(BECAUSE[Ending.TIME_LIMIT], timeout=150_000)
    expect(dialog(page)).to_contain_text(re.compile(r"saved.* at \d"))


def test_a_named_session_starts_again_by_its_name(
    portal: Instance, page: Page, user: Visitor
) -> None:
    """From its own page, and from Home, while the user's other session goes on."""
    other = user.start_and_wait(gpus=0, hours=1)
    named = user.at("two")
    named.start_and_wait(gpus=1, hours=1)
    own = f"/user/{USER}/two/lab/tree/{NOTEBOOK}"
    log_in(page, portal, USER, to=own)
    wait_for_notebook(page)
    expect(time_left(page)).to_be_visible()
    named.stop()
    expect(dialog(page)).to_contain_text(BECAUSE[Ending.STOPPED])
    assert portal.jobs(user=USER) == [other]
    dialog(page).get_by_role("button", name="Start Again").click()
    until(lambda: len(portal.jobs(user=USER)) == 2, seconds=60, what="another job")
    wait_for_notebook(page)
    assert page.url.endswith(own)

    named.stop()
    page.goto(f"{portal.url}/hub/home")
    last = page.locator("#past").get_by_role("listitem").first
    expect(last).to_contain_text(re.compile(r"1 GPU on \S+ \(two\)"))
    press(page, last.get_by_role("button", name="Start again: 1 GPU (two)"))
    page.wait_for_url(re.compile(f"/user/{USER}/two/lab"), timeout=90_000)
    assert len(portal.jobs(user=USER)) == 2
    assert other in portal.jobs(user=USER)


def test_what_is_not_saved_is_named(portal: Instance, page: Page, user: Visitor) -> None:
    user.start_and_wait(gpus=0, hours=1)
    open_notebook(page, portal)
    page.locator(".jp-Notebook .cm-content").first.click()
    page.keyboard.type("x")
    user.stop()
    expect(dialog(page)).to_contain_text(re.compile(f"Not saved: {NOTEBOOK}.*last saved at \\d"))


def test_the_file_menu_and_the_status_bar_stop_the_session(
    portal: Instance, page: Page, user: Visitor, photograph: Callable[[Page, str], None]
) -> None:
    user.start_and_wait(gpus=1, hours=1)
    open_notebook(page, portal)
    page.locator(".jp-Notebook .cm-content").first.click()
    page.keyboard.type("saved_when_stopped")
    question = page.get_by_role("dialog").filter(has_text="Stop this session?")
    page.get_by_role("menuitem", name="File", exact=True).click()
    page.get_by_role("menuitem", name="Stop Session").click()
    question.get_by_role("button", name="Cancel").click()
    expect(question).to_have_count(0)
    page.locator("#jp-bottom-panel, #jp-main-statusbar").get_by_role(
        "button", name="Stop", exact=True
    ).click()
    photograph(page, "stop")
    question.get_by_role("button", name="Stop").click()
    expect(dialog(page)).to_contain_text(BECAUSE[Ending.FINISHED])
    assert portal.jobs(user=USER) == []
    home = Path(pwd.getpwnam(USER).pw_dir)
    assert "saved_when_stopped" in (home / NOTEBOOK).read_text()


def test_a_phone_has_stop_in_sight(portal: Instance, page: Page, user: Visitor) -> None:
    """JupyterLab leaves items out of a window that is narrow when it is opened."""
    user.start_and_wait(gpus=0, hours=1)
    page.set_viewport_size({"width": 360, "height": 740})
    log_in(page, portal, USER, to=f"/user/{USER}/lab")
    stop = page.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_in_viewport(ratio=1, timeout=90_000)
    expect(time_left(page)).to_be_in_viewport(ratio=1)


def test_a_restart_of_the_hub_is_no_end(portal: Instance, page: Page, user: Visitor) -> None:
    user.start_and_wait(gpus=0, hours=1)
    open_notebook(page, portal)
    faults.service("stop", "hub")
    try:
        page.wait_for_timeout(12_000)
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(notice(page)).to_have_count(0)
    finally:
        faults.service("start", "hub")
        faults.wait_for_hub(portal)


def test_the_hub_tells_of_a_session_to_its_own_page_only(
    portal: Instance, user: Visitor, visit: Callable[[str], Visitor]
) -> None:
    job_id = user.start_and_wait(gpus=0, hours=1)
    path = f"/hub/portal/session/{job_id}"
    page = {"Referer": f"{portal.url}/user/{USER}/lab"}
    told = user.http.get(path, headers=page)
    assert told.json()["state"] == "running"
    assert user.http.get(path).status_code == 403
    elsewhere = {"Referer": f"{portal.url}/user/{USERS[2]}/lab"}
    assert user.http.get(path, headers=elsewhere).status_code == 403
    other = visit(USERS[2])
    assert other.http.get(path, headers=elsewhere).json()["state"] == "unknown"
    assert other.http.get(path, headers=page).status_code == 403
    user.stop()
    ended = until(
        lambda: user.http.get(path, headers=page).json()["ended"], seconds=10, what="it has ended"
    )
    assert isinstance(ended, int)


def test_no_link_starts_a_session_again_without_the_hubs_token(
    portal: Instance, user: Visitor, visit: Callable[[str], Visitor]
) -> None:
    job_id = user.start_and_wait(gpus=0, hours=1)
    user.stop()
    page = {"Referer": f"{portal.url}/user/{USER}/lab"}
    told = until(
        lambda: user.http.get(f"/hub/portal/session/{job_id}", headers=page).json().get("token"),
        seconds=10,
        what="its end is written down",
    )
    start = f"/hub/portal/start-again/{job_id}"
    other = visit(USERS[2])
    other.leave()
    for visitor, token in ((user, ""), (user, "forged"), (other, told)):
        shown = visitor.http.get(start, params={"token": token})
        assert 'id="spawn_form"' in shown.text
        assert "data-start-form" not in shown.text
    shown = user.http.get(start, params={"token": told})
    assert "data-start-form" in shown.text
    assert 'name="hours" value="1"' in shown.text
    # It is sent by a script, as a form of the hub's: with the token of those.
    form = {"gpus": "0", "hours": "1"}
    assert user.http.post(f"/hub/spawn/{USER}", data=form).status_code == 403
    for visitor in (user, other):
        assert portal.jobs(user=visitor.name) == []
