"""The scripts of Home and of the cluster page in a real browser, with a stand-in for the hub.

No hub of ours has a clock that is off, a login that has expired while a page was open, or a network
that is away. `test_home` and `test_cluster_page` have the real ones.
"""

import json
import mimetypes
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from dsportal.cluster.pages import FILES
from dsportal.hub.pages.home import SessionCard
from tests.hub_pages import STATIC, rendered, user

pytestmark = pytest.mark.browser

RUNS = SimpleNamespace(pending=None, active=True, ready=True)
USE = json.dumps({"cores": 1.5, "memory_bytes": 2**30})
LOGIN = "<!doctype html><h1>Log in</h1>"


def home() -> str:
    """Home of somebody with two sessions; the first has begun just now."""
    now = datetime.now(UTC)
    card = SessionCard(
        gpus=1,
        cores=4,
        memory_mb=8192,
        node="node001",
        started=now,
        ends=now + timedelta(hours=1, minutes=59, seconds=30),
    )
    second = SimpleNamespace(**vars(RUNS), name="second", display_name="Second", last_activity=now)
    return rendered(
        "home.html",
        user=user(second),
        default_server=RUNS,
        cards={"": card, "second": SessionCard()},
        url="/user/ada/",
        past=[],
        has_ssh=False,
        allow_named_servers=True,
        named_server_limit_per_user=0,
        invalid_server_names=[],
    )


@dataclass
class StandIn:
    """What the hub says."""

    url: str = ""
    knows_login: bool = True

    def answer(self, path: str) -> tuple[int, str, bytes, str]:
        """Return status, kind and content of an answer, and where it leads."""
        if path.startswith("/hub/static/"):
            file = STATIC / path.removeprefix("/hub/static/")
            kind = mimetypes.guess_type(file.name)[0] or "text/plain"
            return (200, kind, file.read_bytes(), "") if file.is_file() else (404, kind, b"", "")
        if path == "/hub/login":
            return 200, "text/html", LOGIN.encode(), ""
        if not self.knows_login:
            return 302, "text/html", b"", "/hub/login?next=%2Fhub%2Fhome"
        if path == "/hub/portal/use":
            return 200, "application/json", USE.encode(), ""
        return 200, "text/html", home().encode(), ""


@pytest.fixture
def hub() -> Iterator[StandIn]:
    stand_in = StandIn()

    class Answers(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            status, kind, content, target = stand_in.answer(self.path.partition("?")[0])
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            if target:
                self.send_header("Location", target)
            self.end_headers()
            self.wfile.write(content)

        def do_DELETE(self) -> None:
            self.send_error(503)

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        stand_in.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield stand_in
        server.shutdown()
        thread.join()


def open_home(page: Page, hub: StandIn) -> None:
    page.goto(f"{hub.url}/hub/home")
    expect(page.locator("body.is-ready")).to_be_attached()


def test_home_leads_to_the_login_that_has_expired(page: Page, hub: StandIn) -> None:
    faults: list[object] = []
    page.on("pageerror", lambda fault: faults.append(fault))
    page.clock.install()
    open_home(page, hub)
    expect(page.locator("[data-use]")).to_contain_text("1.5 of 4 cores")
    hub.knows_login = False
    page.clock.run_for(16_000)
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert faults == []


def test_home_tells_the_time_left_by_the_hubs_clock(page: Page, hub: StandIn) -> None:
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(minutes=90))
    open_home(page, hub)
    expect(page.locator("[data-left]")).to_have_text("1 h 59 min")


def test_what_could_not_be_stopped_can_be_stopped_again(page: Page, hub: StandIn) -> None:
    open_home(page, hub)
    stop = page.get_by_role("button", name="Stop second")
    stop.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("503")
    expect(stop).to_have_attribute("disabled", "true")
    dialog.get_by_role("button", name="OK").click()
    expect(stop).not_to_have_attribute("disabled", "true")


@pytest.mark.parametrize("given", ["", "  "])
@pytest.mark.parametrize("by", ["click", "Enter"])
def test_a_session_without_a_name_is_asked_for_one(
    page: Page, hub: StandIn, by: str, given: str
) -> None:
    faults: list[object] = []
    page.on("pageerror", lambda fault: faults.append(fault))
    open_home(page, hub)
    name = page.get_by_label("Name of a new session")
    name.fill(given)
    if by == "click":
        page.get_by_role("button", name="Start another session").click()
    else:
        name.press("Enter")
    expect(name).to_be_focused()
    assert faults == []


def test_what_is_called_a_button_works_with_the_space_bar(page: Page, hub: StandIn) -> None:
    open_home(page, hub)
    page.get_by_role("button", name="Open JupyterLab").press("Space")
    page.wait_for_url("**/user/ada/")


def test_a_stop_is_read_out(page: Page, hub: StandIn) -> None:
    open_home(page, hub)
    page.route("**/hub/api/**", lambda route: None)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Stopping")


@pytest.fixture
def start(page: Page) -> Locator:
    """The button of a form whose order leads to no other page."""
    form = rendered(
        "spawn.html", user=user(), for_user=None, url="/hub/spawn", spawner_options_form=""
    )

    def answer(route: Route) -> None:
        if route.request.method == "GET":
            route.fulfill(content_type="text/html; charset=utf-8", body=form)
        else:
            route.fulfill(status=204)

    page.route("http://portal.test/hub/spawn", answer)
    page.goto("http://portal.test/hub/spawn", wait_until="commit")
    return page.locator("#start")


def test_one_click_is_one_order(start: Locator) -> None:
    start.click()
    expect(start).to_be_disabled()
    expect(start).to_have_text("Starting…")


def test_a_form_that_a_script_has_dealt_with_is_not_on_its_way(start: Locator) -> None:
    start.evaluate("one => one.form.addEventListener('submit', (event) => event.preventDefault())")
    start.click()
    expect(start).to_be_enabled()
    expect(start).to_have_text("Start")


def table(*users: str) -> str:
    rows = (
        f'<tr><td><button type="submit" form="stop" name="session" value="{name}/" class="stop" '
        f'aria-label="Stop the session of {name}">Stop</button></td></tr>'
        for name in users
    )
    return f"<table>{''.join(rows)}</table>"


CLUSTER = f"""<!doctype html><body data-xsrf="x" data-layout="one">
<time id="as-of" datetime="2026-11-20T12:00:00Z"></time> <span id="live" role="status"></span>
<form id="stop" method="post"></form><div id="sessions">{table("ada", "bob")}</div>
<script src="page.js" defer></script>"""


@dataclass
class ClusterStandIn:
    """What the cluster service says; nothing while it is away."""

    listed: tuple[str, ...] = ()

    def __call__(self, route: Route) -> None:
        if route.request.url.endswith("/page.js"):
            route.fulfill(path=FILES["page.js"])
        elif not route.request.url.endswith("/events"):
            route.fulfill(content_type="text/html; charset=utf-8", body=CLUSTER)
        elif self.listed:
            told = {"as_of": 1, "parts": {"layout": "one", "sessions": table(*self.listed)}}
            route.fulfill(body=f"event: parts\ndata: {json.dumps(told)}\n\n")
        else:
            route.abort()


@pytest.fixture
def cluster(page: Page) -> ClusterStandIn:
    stand_in = ClusterStandIn()
    page.route("**/*", stand_in)
    page.clock.install()
    page.goto("http://portal.test/services/cluster/")
    expect(page.locator("#live")).to_have_text("· reconnecting")
    return stand_in


@pytest.mark.parametrize(
    ("listed", "focused"),
    [(("bob", "ada"), "Stop the session of ada"), (("bob",), None)],
)
def test_the_focus_does_not_come_to_another_users_stop(
    page: Page, cluster: ClusterStandIn, listed: tuple[str, ...], focused: str | None
) -> None:
    page.get_by_role("button", name="Stop the session of ada").focus()
    cluster.listed = listed
    page.clock.run_for(4000)
    expect(page.get_by_role("button").first).to_have_accessible_name("Stop the session of bob")
    found = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert found == focused


def test_a_network_that_is_away_is_read_out_once(page: Page, cluster: ClusterStandIn) -> None:
    live = page.locator("#live")
    live.evaluate(
        "place => { window.said = 0; const changed = () => { window.said += 1; };"
        "new MutationObserver(changed).observe(place, { childList: true, subtree: true }); }"
    )
    for _ in range(3):
        with page.expect_event("requestfailed"):
            page.clock.run_for(4000)
    expect(live).to_have_text("· reconnecting")
    assert page.evaluate("window.said") == 0
