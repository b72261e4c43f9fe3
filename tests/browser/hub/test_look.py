"""The design: every page, light and dark, wide and narrow; and the welcome in JupyterLab."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests import faults
from tests.browser import axe
from tests.browser.fit import (
    BRIGHTNESS,
    SCHEMES,
    assert_has_no_faults,
    assert_is_fit_to_use,
    forms,
)
from tests.browser.lab import forget_theme, log_in, wait_for_launcher
from tests.instance import ADMIN, USERS, Instance
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[1]
Take = Callable[[Page, str], None]


@contextmanager
def browsing(chromium: Browser, **options: Any) -> Iterator[Page]:
    """Open a page in a fresh profile."""
    context = chromium.new_context(**options)
    context.set_default_timeout(30_000)
    yield context.new_page()
    context.close()


def test_nobody_is_shut_out_of_the_login(portal: Instance, page: Page) -> None:
    page.goto(portal.url)
    assert_is_fit_to_use(page, "login")
    page.get_by_label("Username").fill("nobody")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Show what is typed").click()
    expect(page.get_by_label("Password")).to_have_attribute("type", "text")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("Invalid username or password")
    expect(page.get_by_label("Username")).to_have_value("nobody")
    assert_is_fit_to_use(page, "login, refused")


def test_nobody_is_shut_out_of_a_users_pages(
    portal: Instance, page: Page, visit: Callable[[str], Visitor], photograph: Take
) -> None:
    visit(USER).leave()
    log_in(page, portal, USER, to="/hub/home")
    expect(page.get_by_role("heading", name="Your session")).to_be_visible()
    assert_is_fit_to_use(page, "home")
    page.goto(f"{portal.url}/hub/spawn")
    expect(page.locator("#gpu-form-forecast")).to_contain_text("Starts")
    assert_is_fit_to_use(page, "options")
    page.goto(f"{portal.url}/hub/token")
    page.wait_for_function("window._jupyterhub_page_loaded")
    page.get_by_label("What it is for").fill("a test")
    page.get_by_role("button", name="Create a token").click()
    expect(page.locator("#token-result")).to_have_text(re.compile("^[0-9a-f]{32}"))
    page.reload()
    expect(page.get_by_role("button", name="Revoke a test").first).to_be_visible()
    assert_is_fit_to_use(page, "tokens")
    page.goto(f"{portal.url}/hub/no-such-page")
    expect(page.locator("#no-such-page")).to_be_visible()
    assert_is_fit_to_use(page, "no such page")
    page.goto(f"{portal.url}/hub/user/{USER}/lab")
    expect(page.locator("#not-running")).to_be_visible()
    assert_is_fit_to_use(page, "not running")
    page.goto(f"{portal.url}/hub/admin")
    expect(page.get_by_text("Error 403")).to_be_visible()
    assert_is_fit_to_use(page, "error")


def test_a_sessions_own_token_is_not_revoked_by_a_click(
    portal: Instance, page: Page, visit: Callable[[str], Visitor]
) -> None:
    user = visit(USER)
    user.start_and_wait(gpus=0)
    # A browser is let in by a token of its own.
    log_in(page, portal, USER, to=f"/user/{USER}/lab")
    page.wait_for_url(re.compile(f"/user/{USER}/lab"))
    page.goto(f"{portal.url}/hub/token")
    page.wait_for_function("window._jupyterhub_page_loaded")
    own = page.get_by_role("region", name=f"Session at /user/{USER}/", exact=True)
    expect(own).to_have_count(2)
    for number in range(2):
        expect(own.nth(number)).to_contain_text("In use")
    expect(own.get_by_role("button", name=re.compile("^Revoke"))).to_have_count(0)
    # The others have their button.
    page.get_by_label("What it is for").fill("a program")
    page.get_by_role("button", name="Create a token").click()
    expect(page.locator("#token-result")).not_to_be_empty()
    page.reload()
    expect(page.get_by_role("button", name="Revoke a program").first).to_be_visible()
    expect(own.get_by_role("button", name=re.compile("^Revoke"))).to_have_count(0)
    assert_is_fit_to_use(page, "tokens, with a session's")


def test_nobody_is_shut_out_while_a_session_waits_or_fails(
    portal: Instance, page: Page, visit: Callable[[str], Visitor]
) -> None:
    visitor = visit(USER)
    with portal.gpus_taken():
        assert visitor.start(gpus=4).status_code == 202
        log_in(page, portal, USER, to=f"/hub/spawn-pending/{USER}")
        expect(page.get_by_role("status").first).to_contain_text("PENDING")
        assert_is_fit_to_use(page, "waiting")
        visitor.stop()
    with faults.session_program(portal, "#!/bin/bash\necho the disk is full >&2\nexit 3\n"):
        visitor.start(gpus=0)
        page.goto(f"{portal.url}/hub/spawn-pending/{USER}")
        expect(page.get_by_text("the disk is full")).to_be_visible()
        assert_is_fit_to_use(page, "failed")


def test_nobody_is_shut_out_of_the_admins_page(
    portal: Instance, page: Page, photograph: Take
) -> None:
    log_in(page, portal, ADMIN, to="/hub/admin")
    expect(page.get_by_role("button", name=f"Details of {ADMIN}")).to_be_visible()
    assert not re.search("server", page.locator("#react-admin-hook").inner_text(), re.IGNORECASE)
    assert_is_fit_to_use(page, "admin")
    photograph(page, "admin")
    page.get_by_role("button", name="Add Users").click()
    expect(page.get_by_label("Usernames, one per line")).to_be_visible()
    assert_is_fit_to_use(page, "admin, add users")
    page.get_by_role("button", name="Back").click()
    page.get_by_role("button", name="Delete User").first.click()
    expect(page.get_by_role("heading", name=re.compile("^Delete user "))).to_be_visible()
    assert_is_fit_to_use(page, "admin, delete a user")


def test_light_and_dark_follow_the_system_until_one_is_chosen(
    portal: Instance, chromium: Browser
) -> None:
    with browsing(chromium, color_scheme="dark", java_script_enabled=False) as page:
        page.goto(portal.url)
        card = page.locator(".portal-card").first
        expect(card).to_have_css("background-color", "rgb(26, 32, 41)")
    with browsing(chromium, color_scheme="dark") as page:
        page.goto(portal.url)
        assert page.evaluate(BRIGHTNESS) < 128
        page.get_by_role("button", name="Switch between light and dark").click()
        assert page.evaluate(BRIGHTNESS) > 128
        page.reload()
        assert page.evaluate(BRIGHTNESS) > 128


def test_jupyterlab_follows_the_system_as_the_other_pages_do(
    portal: Instance, chromium: Browser, visit: Callable[[str], Visitor]
) -> None:
    forget_theme(portal, USER)
    visit(USER).start_and_wait(gpus=0)
    for scheme in SCHEMES:
        with browsing(chromium, color_scheme=scheme) as page:
            log_in(page, portal, USER, to=f"/user/{USER}/lab?reset")
            body = page.locator(f'body[data-jp-theme-light="{str(scheme == "light").lower()}"]')
            expect(body).to_be_attached(timeout=90_000)


def test_the_documentation_is_found_and_searched_without_another_site(
    portal: Instance, chromium: Browser
) -> None:
    asked: list[str] = []
    with browsing(chromium) as page:
        page.on("request", lambda request: asked.append(request.url))
        log_in(page, portal, USER, to="/hub/token")
        page.get_by_role("link", name="Help", exact=True).click()
        expect(page.get_by_role("heading", level=1).first).to_be_visible()
        # Its scripts draw the button, and until then the page hears no key.
        expect(page.get_by_role("button", name=re.compile("^Search"))).to_be_visible()
        page.keyboard.press("/")
        search = page.get_by_role("combobox", name="Search")
        expect(search).to_be_focused()
        search.press_sequentially("extend session")
        expect(
            page.get_by_role("link", name=re.compile("more time", re.IGNORECASE)).first
        ).to_be_visible()
        names = ("index", "how-to/get-more-time", "how-to/use-jupyterlab")
        for name in names:
            page.goto(f"{portal.url}/hub/portal/docs/{name}.html")
            for _, seen in forms(page, name):
                page.reload()
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                assert_has_no_faults(page, seen)
    assert not [url for url in asked if not url.startswith((portal.url, "data:", "blob:"))]


def test_the_documentation_is_for_those_who_cannot_log_in_and_is_only_its_own_files(
    portal: Instance,
) -> None:
    docs = f"{portal.url}/hub/portal/docs"
    assert "Content-Security-Policy" in httpx.get(f"{docs}/index.html").headers
    for path in ("..%2f..%2f..%2fetc/passwd", "nothing.html", ".lock"):
        assert httpx.get(f"{docs}/{path}").status_code in (400, 403, 404), path


def test_the_style_sheet_is_kept_by_browsers_as_long_as_it_is_the_same(portal: Instance) -> None:
    login = httpx.get(f"{portal.url}/hub/login").text
    address = re.findall(r'href="(/hub/portal/look\.css\?v=\w+)"', login)[0]
    kept = httpx.get(f"{portal.url}{address}")
    assert kept.headers["content-type"].startswith("text/css")
    assert "--portal-accent-light: #3556c4;" in kept.text
    assert "immutable" in kept.headers["cache-control"]
    old = httpx.get(f"{portal.url}/hub/portal/look.css?v=0123456789ab")
    assert old.headers["cache-control"] == "no-cache"


def set_theme(visitor: Visitor, name: str) -> None:
    """Choose a theme, as JupyterLab's menu does."""
    path = "/lab/api/settings/@jupyterlab/apputils-extension:themes"
    raw = json.dumps({"theme": name, "adaptive-theme": False})
    visitor.session("PUT", path, json={"raw": raw}).raise_for_status()


def forget_the_dismissal(visitor: Visitor) -> None:
    """Make the user one who is here for the first time."""
    path = "/lab/api/settings/data-scientist-portal:welcome"
    visitor.session("PUT", path, json={"raw": "{}"}).raise_for_status()


def test_a_first_time_user_is_told_what_is_where_and_how_to_start(
    portal: Instance, page: Page, visit: Callable[[str], Visitor], photograph: Take
) -> None:
    visitor = visit(USER)
    visitor.start_and_wait(gpus=2)
    forget_the_dismissal(visitor)
    welcome = page.get_by_role("region", name="Welcome")
    lab = f"{portal.url}/user/{USER}/lab"
    set_theme(visitor, "JupyterLab Dark")
    log_in(page, portal, USER, to=f"/user/{USER}/lab?reset")
    expect(welcome).to_be_visible(timeout=90_000)
    assert axe.faults(page, ".portal-welcome") == []
    set_theme(visitor, "JupyterLab Light")
    page.goto(f"{lab}?reset")
    for name, note in portal.settings["session"]["folder_notes"].items():
        folder = page.get_by_role("button", name=f"Open the folder {name}")
        expect(welcome.get_by_role("listitem").filter(has=folder)).to_contain_text(note)
    templates = page.get_by_role("button", name="Open the folder templates")
    expect(welcome.get_by_role("listitem").filter(has=templates)).to_contain_text("copies")
    assert axe.faults(page, ".portal-welcome") == []
    accent = "getComputedStyle(document.documentElement).getPropertyValue('--jp-brand-color1')"
    assert page.evaluate(accent) == "#3556c4"
    assert page.locator("#jp-MainLogo img").evaluate("picture => picture.naturalWidth") > 0
    # Its buttons do what they say.
    welcome.get_by_role("button", name="Open the folder templates").click()
    listing = page.locator(".jp-DirListing-content")
    expect(listing.get_by_text("tensorflow", exact=True)).to_be_visible()
    welcome.get_by_role("button", name="New from Template").click()
    expect(page.get_by_role("dialog").filter(has_text="New from Template")).to_be_visible()
    page.keyboard.press("Escape")
    # Dismissed, it stays so, until it is asked for.
    welcome.get_by_role("button", name="Dismiss the welcome").click()
    expect(welcome).to_have_count(0)
    page.goto(f"{lab}?reset")
    wait_for_launcher(page)
    expect(welcome).to_have_count(0)
    page.get_by_role("menuitem", name="Help", exact=True).click()
    with page.expect_popup() as opened:
        page.get_by_role("menuitem", name="Tutorials and How-Tos").click()
    expect(opened.value).to_have_url(f"{portal.url}/hub/portal/docs/index.html")
    opened.value.close()
    page.get_by_role("menuitem", name="Help", exact=True).click()
    page.get_by_role("menuitem", name="Welcome").click()
    expect(welcome).to_be_visible()
    # Whoever has opened a notebook has no more need of it.
    page.locator('.jp-LauncherCard[data-category="Notebook"]', has_text="Python 3").first.click()
    expect(page.locator(".jp-Notebook")).to_be_visible()
    page.goto(f"{lab}?reset")
    wait_for_launcher(page)
    expect(welcome).to_have_count(0)
    forget_the_dismissal(visitor)
    # A phone has room for it.
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{lab}?reset")
    start = welcome.get_by_role("button", name="New from Template")
    expect(start).to_be_visible(timeout=60_000)
    start.scroll_into_view_if_needed()
    box = start.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    assert axe.faults(page, ".portal-welcome") == []
    page.set_viewport_size({"width": 1280, "height": 860})
    # Stopping is asked about; Home does it by keyboard.
    welcome.get_by_role("button", name="Stop Session").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    home = page.context.new_page()
    home.goto(f"{portal.url}/hub/home")
    home.wait_for_function("window._jupyterhub_page_loaded")
    expect(home.locator("#state")).to_have_text("Running")
    photograph(home, "home")
    assert axe.faults(home) == []
    home.get_by_role("button", name="Stop", exact=True).press("Enter")
    expect(home.locator("#state")).to_have_text("Not running", timeout=60_000)
