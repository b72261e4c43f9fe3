"""Connect with SSH: the page that hands out the program, the token and the lines for ssh."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser import axe
from tests.browser.lab import log_in
from tests.instance import USERS, Instance, trust
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[4]


def test_the_page_hands_out_what_ssh_needs(
    portal: Instance,
    page: Page,
    visit: Callable[[str], Visitor],
    photograph: Callable[[Page, str], None],
    tmp_path: Path,
) -> None:
    visit(USER).start_and_wait(gpus=0, hours=1)
    log_in(page, portal, USER, to="/hub/home")
    page.get_by_role("link", name="Connect with SSH or VS Code").click()
    expect(page.get_by_role("heading", name="Connect with SSH")).to_be_visible()
    expect(page.get_by_text("session is not running")).to_have_count(0)

    with page.expect_download() as program:
        page.get_by_role("link", name="Download portal_ssh.py").click()
    program.value.save_as(tmp_path / "portal_ssh.py")
    compile((tmp_path / "portal_ssh.py").read_text(), "portal_ssh.py", "exec")

    # A token of the length that was chosen, which opens this session.
    expect(page.get_by_label("Valid for")).to_have_value("7")
    page.get_by_label("Valid for").select_option("1")
    with page.expect_download() as token:
        page.get_by_role("button", name="Create and save a token").click()
    expect(page.get_by_role("status")).to_contain_text("portal-token")
    assert token.value.suggested_filename == "portal-token"
    token.value.save_as(tmp_path / "token")
    headers = {"Authorization": f"token {(tmp_path / 'token').read_text()}"}
    url = f"{portal.url}/user/{USER}/api/status"
    assert httpx.get(url, headers=headers, verify=trust()).status_code == 200

    # What is copied is what is shown.
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy: lines for ~/.ssh/config").click()
    expect(page.get_by_role("button", name="Copy: lines for ~/.ssh/config")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.splitlines()[:2] == ["Host portal", f"    User {USER}"]
    assert f"portal_ssh.py {portal.url}/user/{USER}/\n" in copied

    photograph(page, "ssh")
    for width, height in ((1440, 900), (360, 740)):
        for scheme in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme)
            page.reload()
            photograph(page, f"ssh-{scheme}-{width}")
            assert axe.faults(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width

    page.goto(f"{portal.url}/hub/token")
    mine = page.get_by_role("region", name="SSH").first
    expect(mine).to_contain_text("1 permission")


def test_without_a_session_the_page_leads_to_the_start(
    portal: Instance, page: Page, visit: Callable[[str], Visitor]
) -> None:
    # Afterwards the named session below is forgotten again.
    visit(USERS[0]).leave()
    log_in(page, portal, USERS[0], to="/hub/portal/ssh")
    page.get_by_role("link", name="start it").click()
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    # A named session is started by its own form, which makes it known.
    page.goto(f"{portal.url}/hub/spawn/{USERS[0]}/second")
    page.goto(f"{portal.url}/hub/portal/ssh?server=second")
    expect(page.get_by_text("ssh portal-second")).to_be_visible()
    page.get_by_role("link", name="start it").click()
    expect(page).to_have_url(f"{portal.url}/hub/spawn/{USERS[0]}/second")
    answer = page.goto(f"{portal.url}/hub/portal/ssh?server=nobody")
    assert answer is not None
    assert answer.status == 404
