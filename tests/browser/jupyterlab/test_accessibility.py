"""What the portal adds to JupyterLab, as axe-core sees it: panels, dialogs, a log."""

import pwd
import re
from collections.abc import Callable, Iterable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.fit import (
    SCHEMES,
    Scheme,
    assert_dialog_is_fit,
    assert_part_is_fit,
    wait_for_theme,
)
from tests.browser.lab import forget_theme, open_lab
from tests.instance import USERS, Instance
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[2]


@pytest.fixture
def user(portal: Instance, visit: Callable[[str], Visitor]) -> Visitor:
    forget_theme(portal, USER)
    user = visit(USER)
    user.leave()
    user.start_and_wait(gpus=1, hours=1)
    return user


@pytest.fixture
def job_id(portal: Instance) -> Iterator[str]:
    """A job that has written a line and runs."""
    home = pwd.getpwnam(USER).pw_dir
    argv = ["sbatch", "--parsable", "--mem=50M", "--wrap=echo step 1; sleep 600"]
    job_id = portal.slurm(*argv, user=USER, home=home).strip()
    yield job_id
    portal.cancel(job_id)


def check_dialog(page: Page, title: str, schemes: Iterable[Scheme] = SCHEMES) -> None:
    """Look at the dialog that is open, and close it."""
    assert_dialog_is_fit(page, title, schemes)
    page.keyboard.press("Escape")
    expect(page.locator(".jp-Dialog")).to_have_count(0)


def test_panels_and_dialogs_have_no_faults(
    portal: Instance, page: Page, user: Visitor, job_id: str
) -> None:
    open_lab(page, portal, USER)
    assert_part_is_fit(page, "launcher", ".jp-Launcher")
    page.locator(".jp-LauncherCard", has_text="New from Template").last.click()
    expect(page.get_by_role("dialog").get_by_role("radio").first).to_be_visible()
    check_dialog(page, "New from Template")

    page.get_by_role("tab", name="Slurm: my jobs").click()
    page.get_by_role("button", name=f"Log of job {job_id}").click()
    expect(page.get_by_role("log")).to_contain_text("step 1")
    assert_part_is_fit(page, "Slurm panel", "#data-scientist-portal-jobs")
    assert_part_is_fit(page, "log", f"#data-scientist-portal-log-{job_id}")
    page.get_by_role("button", name=f"Cancel job {job_id}").click()
    check_dialog(page, "Cancel job")

    page.get_by_role("tab", name="My GPUs").click()
    expect(page.locator("#data-scientist-portal-use").get_by_role("img").first).to_be_visible()
    assert_part_is_fit(page, "My GPUs", "#data-scientist-portal-use")

    page.get_by_role("button", name=re.compile("left$")).click()
    check_dialog(page, "Extend Session")
    page.get_by_role("menuitem", name="File", exact=True).click()
    page.get_by_role("menuitem", name="Stop Session").click()
    check_dialog(page, "Stop this session?")
    # And by keyboard alone.
    page.keyboard.press("Control+Shift+C")
    page.keyboard.type("Stop Session")
    expect(page.locator(".lm-CommandPalette-item.lm-mod-active")).to_contain_text("Stop Session")
    page.keyboard.press("Enter")
    check_dialog(page, "Stop this session?")

    # A session that is gone gives no other theme. JupyterLab forgets a change of the system's
    # that comes while it still loads the theme of the last one.
    wait_for_theme(page, "light")
    page.emulate_media(color_scheme="dark")
    wait_for_theme(page, "dark")
    user.stop()
    check_dialog(page, "Your session has ended", ["dark"])
    log = page.locator(f"#data-scientist-portal-log-{job_id}")
    expect(log).to_contain_text("not responding")
