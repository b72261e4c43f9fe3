"""A colleague opens the link that a hostile user sent: what a real browser does with it.

The hostile page is served by the user's own program in the place of the session's server. The
portal has one host name here, as `make up` has.
"""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import lab
from tests.hostile.impostor import Impostor, impostor
from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

pytestmark = pytest.mark.browser
MALLORY, ALICE = USERS[:2]


@pytest.fixture(scope="module")
def mallory(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, MALLORY) as mallory:
        yield mallory


@pytest.fixture(scope="module")
def hostile(mallory: Visitor) -> Iterator[Impostor]:
    with impostor(mallory) as found:
        yield found


@pytest.fixture
def browser(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context()
    context.set_default_timeout(30_000)
    yield context
    context.close()


def log_in(context: BrowserContext, portal: Instance, name: str, then: str = "/hub/home") -> Page:
    page = context.new_page()
    lab.log_in(page, portal, name, to=then)
    page.wait_for_url(lambda url: "/hub/login" not in url)
    return page


def log_out(page: Page, portal: Instance) -> None:
    page.goto(f"{portal.url}/hub/logout?keep=1")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()


def names_of_cookies(context: BrowserContext) -> set[str]:
    return {cookie.get("name", "") for cookie in context.cookies()}


@contextmanager
def site_with(page: str) -> Iterator[str]:
    """Serve a page at an address that is not the portal's, as any web site could."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = page.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            # Another host than the portal's, so that nothing is shared.
            yield f"http://localhost:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def test_its_own_user_sees_it(portal: Instance, browser: BrowserContext, hostile: Impostor) -> None:
    page = log_in(browser, portal, MALLORY)
    page.goto(f"{portal.url}/user/{MALLORY}/own")
    expect(page.get_by_role("heading", name="hostile")).to_be_visible()
    kept = names_of_cookies(browser)
    assert {"ours", "here"} <= kept
    assert not {"root", "hub", "neighbour", "climbing", "wide", "unreadable"} & kept
    # Its `register` is refused when the answer has come; until then there is a registration.
    refused = "navigator.serviceWorker.register('worker.js', {scope: '/'}).then(() => 0, String)"
    assert "scope" in str(page.evaluate(refused))
    workers = "navigator.serviceWorker.getRegistrations().then(all => all.length)"
    assert page.evaluate(workers) == 0


def test_a_link_does_not_open_it_for_a_colleague(
    portal: Instance, browser: BrowserContext, hostile: Impostor
) -> None:
    page = log_in(browser, portal, ALICE)
    before = len(hostile.seen())
    page.goto(f"{portal.url}/user/{MALLORY}/link")
    expect(page.get_by_role("heading", name="another user's session")).to_be_visible()
    page.goto(f"{portal.url}/hub/login?next={quote(f'/user/{MALLORY}/link', safe='')}")
    expect(page.get_by_role("heading", name="hostile")).to_have_count(0)
    page.goto(f"{portal.url}/hub/user/{MALLORY}/link")
    expect(page.get_by_role("heading", name="hostile")).to_have_count(0)
    assert len(hostile.seen()) == before


def test_nor_for_one_who_logs_in_on_the_way(
    portal: Instance, browser: BrowserContext, hostile: Impostor
) -> None:
    before = len(hostile.seen())
    page = log_in(browser, portal, ALICE, then=f"/user/{MALLORY}/link")
    expect(page.get_by_role("heading", name="hostile")).to_have_count(0)
    assert len(hostile.seen()) == before


ELSEWHERE = """<!doctype html><script>
window.name = "<script>alert(1)<" + "/script>";
const target = "{portal}/user/{mallory}/{way}";
if ("{way}" === "frame") document.write(`<iframe src="${{target}}"></iframe>`);
if ("{way}" === "picture") document.write(`<img src="${{target}}">`);
if ("{way}" === "script") document.write(`<script src="${{target}}"><` + "/script>");
if ("{way}" === "form") document.write(`<form method=post action="${{target}}"></form>`);
if ("{way}" === "form") document.forms[0].submit();
if ("{way}" === "socket") new WebSocket(target.replace("http", "ws"));
if ("{way}" === "fetch") fetch(target, {{mode: "no-cors", credentials: "include"}});
if ("{way}" === "moved") location = target;
</script><a href="#" onclick="window.open('{portal}/user/{mallory}/opener')">open</a>"""


@pytest.mark.parametrize(
    "way", ["frame", "picture", "script", "form", "socket", "fetch", "moved", "opener"]
)
def test_no_other_site_leads_there(
    portal: Instance, browser: BrowserContext, hostile: Impostor, way: str
) -> None:
    log_in(browser, portal, ALICE)
    before = len(hostile.seen())
    words = ELSEWHERE.format(portal=portal.url, mallory=MALLORY, way=way)
    with site_with(words) as site:
        page = browser.new_page()
        with (
            page.expect_event(
                "websocket" if way == "socket" else "request",
                lambda found: MALLORY in found.url,
            )
            if way != "opener"
            else page.context.expect_page()
        ):
            page.goto(site, wait_until="commit")
            if way == "opener":
                page.get_by_text("open").click()
        for opened in browser.pages:
            opened.wait_for_load_state("networkidle")
    assert len(hostile.seen()) == before


def test_a_browser_that_a_hostile_user_had_before_keeps_nothing_of_it(
    portal: Instance, browser: BrowserContext, hostile: Impostor
) -> None:
    page = log_in(browser, portal, MALLORY)
    page.goto(f"{portal.url}/user/{MALLORY}/kept")
    expect(page.get_by_role("heading", name="hostile")).to_be_visible()
    log_out(page, portal)
    page = log_in(browser, portal, ALICE)
    before = len(hostile.seen())
    page.goto(f"{portal.url}/user/{MALLORY}/kept")
    expect(page.get_by_role("heading", name="another user's session")).to_be_visible()
    assert len(hostile.seen()) == before


def test_cookies_beyond_number_let_nobody_in(
    portal: Instance, browser: BrowserContext, hostile: Impostor
) -> None:
    log_in(browser, portal, ALICE)
    host = portal.url.partition("://")[2].partition(":")[0]
    browser.add_cookies(
        [
            {"name": f"bomb{n}", "value": "x" * 50, "domain": host, "path": f"/user/{MALLORY}/"}
            for n in range(150)
        ]
    )
    before = len(hostile.seen())
    page = browser.new_page()
    page.goto(f"{portal.url}/user/{MALLORY}/bombed")
    expect(page.get_by_role("heading", name="hostile")).to_have_count(0)
    assert len(hostile.seen()) == before
