"""Host names for users (``hub.subdomain_host``): what users need works, and pages stay apart.

One session is its owner's, who has changed it and serves pages of theirs. Who visits it may open
sessions of others: the most that a visitor can be. The instance gets host names for this module.
"""

import json
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Error, Page, expect

from tests import faults
from tests.browser.lab import forget_screen, log_in
from tests.browser.tools.test_tensorboard import see_curve
from tests.hostile.session import HostileSession, hostile
from tests.instance import (
    ADMIN,
    LOGS,
    PASSWORD,
    PREFIX,
    SETTINGS,
    USERS,
    Instance,
    await_hub_log,
)
from tests.names import resolved
from tests.training import curves
from tests.visitor import Visitor, session_of

pytestmark = pytest.mark.browser
OWNER, USER, ANOTHER = USERS[:3]
NAME = "portal.test"


@pytest.fixture(scope="module")
def named(portal: Instance) -> Iterator[Instance]:
    """The instance with an address that has a name, below which users have names of their own."""
    address = f"https://{NAME}:{urlsplit(portal.url).port}"
    hub = {**portal.settings["hub"], "subdomain_host": address}
    before = SETTINGS.read_text(encoding="utf-8")
    changes = {
        'subdomain_host = ""\n': f'subdomain_host = "{address}"\n',
        # Who visits a hostile session has all rights that there are to lose.
        f'server_access_groups = ["{PREFIX}-limited"]\n': (
            f'server_access_groups = ["{PREFIX}-portal-admins"]\n'
        ),
    }
    after = before
    for line, other in changes.items():
        assert after.count(line) == 1, line
        after = after.replace(line, other)
    SETTINGS.write_text(after, encoding="utf-8")
    try:
        with proxy_by_host(), resolved(NAME, "127.0.0.1"):
            yield Instance({**portal.settings, "hub": hub})
    finally:
        SETTINGS.write_text(before, encoding="utf-8")
        faults.restart_hub(portal)


@contextmanager
def proxy_by_host() -> Iterator[None]:
    """Let the proxy go by host names, as the role does with ``portal_subdomain_host``."""
    file = SETTINGS.with_name("proxy.json")
    before = file.read_text()
    try:
        file.write_text(json.dumps({**json.loads(before), "host_routing": True}))
        faults.service("restart", "proxy")
        yield
    finally:
        file.write_text(before)
        faults.service("restart", "proxy")


@pytest.fixture(scope="module")
def trap(named: Instance) -> Iterator[HostileSession]:
    """What its owner has made of their session, when it runs."""
    told = 'c.JupyterHub.template_vars["is_encrypted"] = False\n'
    with hostile(named, OWNER, told) as trap:
        yield trap


@pytest.fixture(scope="module")
def owner(named: Instance, trap: HostileSession) -> Iterator[Visitor]:
    with session_of(named, OWNER) as owner:
        yield owner


@pytest.fixture(scope="module")
def user(named: Instance, trap: HostileSession) -> Iterator[Visitor]:
    """An admin with a session, who may open those of others."""
    with session_of(named, ADMIN) as user:
        yield user


@dataclass(frozen=True)
class Screen:
    """A browser of its own, with somebody's login."""

    portal: Instance
    name: str
    page: Page

    def log_in(self) -> None:
        log_in(self.page, self.portal, self.name, to="/hub/home")
        expect(self.page.get_by_role("heading", name="Your session")).to_be_visible()

    @property
    def own(self) -> str:
        """Where this user's own session is."""
        return f"{self.portal.host_of(self.name)}/user/{self.name}"

    def ask_hub(self, method: str, path: str, body: str | None = None) -> Any:
        """Ask the hub's API as its pages' scripts do."""
        self.page.goto(f"{self.portal.url}/hub/home")
        return self.page.evaluate(ASK, [method, f"/hub/api{path}", body])


ASK = """async ([method, path, body]) => {
    const headers = {"X-XSRFToken": window.jhdata.xsrf_token, "Content-Type": "application/json"};
    const answer = await fetch(path, {method, body, headers});
    return [answer.status, answer.status === 204 ? null : await answer.json()];
}"""
SOCKET = """url => new Promise(resolve => {
    const socket = new WebSocket(url);
    socket.onopen = () => { socket.close(); resolve('open'); };
    socket.onerror = () => resolve('refused');
})"""
TERMINAL = """async ([base, line, awaited]) => {
    const headers = {"X-XSRFToken": document.cookie.match(/_xsrf=([^;]+)/)[1]};
    const made = await fetch(`${base}/api/terminals`, {method: "POST", headers});
    const {name} = await made.json();
    const socket = new WebSocket(`${base.replace("http", "ws")}/terminals/websocket/${name}`);
    return new Promise((resolve, reject) => {
        let screen = "";
        socket.onerror = () => reject(new Error("no websocket"));
        socket.onopen = () => socket.send(JSON.stringify(["stdin", `${line}\\r`]));
        socket.onmessage = message => {
            const [kind, ...rest] = JSON.parse(message.data);
            if (kind === "stdout") screen += rest[0];
            if (screen.includes(awaited)) { socket.close(); resolve(screen); }
        };
    });
}"""


@contextmanager
def screen_of(named: Instance, chromium: Browser, name: str) -> Iterator[Screen]:
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(60_000)
    screen = Screen(named, name, context.new_page())
    screen.log_in()
    yield screen
    context.close()


@pytest.fixture(scope="module")
def own(user: Visitor, chromium: Browser) -> Iterator[Screen]:
    """The user's browser, with the own session's JupyterLab on it."""
    with screen_of(user.instance, chromium, user.name) as screen:
        screen.page.goto(f"{screen.portal.url}/hub/user/{user.name}/lab")
        expect(screen.page.get_by_role("tab", name="Launcher").first).to_be_visible(timeout=90_000)
        yield screen


@pytest.fixture
def lab(own: Screen) -> Page:
    """A page of the user's own session."""
    own.page.goto(f"{own.own}/portal/no-such-page")
    return own.page


@pytest.fixture(scope="module")
def logged_bytes(owner: Visitor) -> int:
    """How much the hub has logged before anybody visits the owner."""
    return (LOGS / "hub.log").stat().st_size


@pytest.fixture(scope="module")
def entered(
    owner: Visitor, logged_bytes: int, trap: HostileSession, user: Visitor, chromium: Browser
) -> Iterator[Screen]:
    """Another browser of the user, who has opened the session of another, and sees a page there."""
    with screen_of(owner.instance, chromium, user.name) as screen:
        screen.page.goto(f"{screen.portal.host_of(OWNER)}/user/{OWNER}/lab")
        screen.page.get_by_role("button", name="Authorize").click()
        expect(screen.page.get_by_role("tab", name="Launcher").first).to_be_visible(timeout=90_000)
        # And the own one, whose cookies the browser then has as well.
        screen.page.goto(f"{screen.own}/lab")
        expect(screen.page.get_by_role("tab", name="Launcher").first).to_be_visible(timeout=90_000)
        yield screen


@pytest.fixture
def page(entered: Screen, trap: HostileSession) -> Page:
    """The page that the session's owner serves, in the visitor's browser."""
    entered.page.goto(trap.page)
    expect(entered.page).to_have_title("hostile")
    return entered.page


# --- what works ---


def test_two_users_work_at_once_each_at_a_host_of_their_own(
    own: Screen, owner: Visitor, chromium: Browser
) -> None:
    with screen_of(owner.instance, chromium, OWNER) as other:
        for screen in (own, other):
            screen.page.goto(f"{screen.portal.url}/hub/user/{screen.name}/lab")
            expect(screen.page.get_by_role("tab", name="Launcher").first).to_be_visible(
                timeout=90_000
            )
            assert urlsplit(screen.page.url).hostname == f"{screen.name}.{NAME}"
        for screen in (own, other):
            said = screen.page.evaluate(TERMINAL, [screen.own, "whoami; echo en''d", "end"])
            assert screen.name in said


def test_our_own_routes_work_there(lab: Page, own: Screen) -> None:
    status = lab.evaluate(
        """path => fetch(path, {
            headers: {"X-XSRFToken": document.cookie.match(/_xsrf=([^;]+)/)[1]},
        }).then(answer => answer.status)""",
        f"/user/{own.name}/portal/clock",
    )
    assert status == 200


def test_tensorboard_draws_there(lab: Page, own: Screen, user: Visitor) -> None:
    folder = Path(pwd.getpwnam(user.name).pw_dir, "curves-at-a-host")
    user.instance.slurm("/bin/mkdir", "-p", str(folder), user=user.name)
    curves.write(user.instance, user.name, folder)
    try:
        lab.goto(f"{own.own}/tensorboard?folder={folder.name}")
        see_curve(lab)
        assert urlsplit(lab.url).hostname == f"{own.name}.{NAME}"
    finally:
        user.instance.slurm("/bin/rm", "-rf", str(folder), user=user.name)


def test_a_web_tool_opens_there(lab: Page, own: Screen) -> None:
    lab.goto(f"{own.own}/tools/digits/")
    expect(lab.get_by_role("heading", name="DIGITS is not installed")).to_be_visible()
    assert lab.url == f"{own.own}/tools/digits/"


def test_an_editor_attaches_with_a_token_and_runs_code(user: Visitor) -> None:
    # As VS Code does: the address of the user's own server, a token in a header, a websocket.
    assert user.run("print(6 * 7)") == "42\n"
    token = {"Authorization": f"token {user.token()}"}
    status = f"{user.instance.host_of(user.name)}/user/{user.name}/api/status"
    assert httpx.get(status, headers=token).status_code == 200
    assert httpx.get(status).status_code == 403


@pytest.mark.usefixtures("trap")
def test_a_session_that_has_ended_starts_again_there_in_one_click(
    named: Instance, chromium: Browser
) -> None:
    forget_screen(named, ANOTHER)
    with session_of(named, ANOTHER) as session, screen_of(named, chromium, ANOTHER) as screen:
        page, launcher = screen.page, screen.page.get_by_role("tab", name="Launcher").first
        page.goto(f"{named.url}/hub/user/{ANOTHER}/lab")
        expect(launcher).to_be_visible(timeout=90_000)
        jobs = named.jobs(user=ANOTHER)
        session.stop()
        over = page.get_by_role("dialog").filter(has_text="Your session has ended")
        over.get_by_role("button", name="Start Again").click()
        page.wait_for_url(f"{named.url}/hub/spawn-pending/**", wait_until="commit")
        page.wait_for_url(f"{screen.own}/lab**", timeout=90_000)
        expect(launcher).to_be_visible(timeout=90_000)
        assert len(named.jobs(user=ANOTHER)) == 1
        assert named.jobs(user=ANOTHER) != jobs


def test_the_cluster_page_has_a_host_of_its_own_and_leads_back(own: Screen) -> None:
    page = own.page
    page.goto(f"{own.portal.url}/hub/home")
    missing = []
    page.on("response", lambda answer: missing.append(answer.url) if answer.status >= 400 else None)
    page.get_by_role("link", name="Cluster").click()
    expect(page.get_by_role("heading", name="Cluster", exact=True)).to_be_visible()
    assert urlsplit(page.url).hostname == f"cluster--service.{NAME}"
    expect(page.get_by_text("· live")).to_be_visible()
    cookies = {cookie["name"] for cookie in page.context.cookies(page.url)}
    assert "__Host-service-cluster" in cookies
    page.get_by_role("link", name="Home").click()
    expect(page.get_by_role("heading", name="Your session")).to_be_visible()
    assert page.url == f"{own.portal.url}/hub/home"
    assert [url for url in missing if "favicon" not in url] == []


def test_the_cluster_page_is_found_at_the_portals_own_address_too(own: Screen) -> None:
    own.page.goto(f"{own.portal.url}/services/cluster/sizing?gpus=8")
    place = urlsplit(own.page.url)
    assert place.hostname == f"cluster--service.{NAME}"
    assert (place.path, place.query) == ("/services/cluster/sizing", "gpus=8")


def test_a_session_asks_for_the_clusters_jobs_there(lab: Page, own: Screen) -> None:
    status = lab.evaluate(
        """path => fetch(path, {
            headers: {"X-XSRFToken": document.cookie.match(/_xsrf=([^;]+)/)[1]},
        }).then(answer => answer.status)""",
        f"/user/{own.name}/portal/jobs",
    )
    assert status == 200


def test_without_a_session_a_users_host_leads_to_the_hub(
    named: Instance, trap: HostileSession, chromium: Browser
) -> None:
    with screen_of(named, chromium, USER) as screen:
        screen.page.goto(f"{screen.own}/lab/tree/notebook.ipynb")
        assert screen.page.url == f"{named.url}/hub/user/{USER}/lab/tree/notebook.ipynb"
        expect(screen.page.get_by_role("button", name="Choose and start")).to_be_visible()
        screen.page.goto(f"{named.host_of(USER)}/")
        assert urlsplit(screen.page.url).netloc == urlsplit(named.url).netloc


def test_admins_and_nobody_else_are_told_that_passwords_are_not_encrypted(
    named: Instance, trap: HostileSession, chromium: Browser, tmp_path: Path
) -> None:
    told = "Passwords are not encrypted."
    with screen_of(named, chromium, USER) as screen:
        screen.page.goto(f"{named.url}/hub/home")
        expect(screen.page.get_by_role("heading", name="Your session")).to_be_visible()
        expect(screen.page.get_by_text(told)).to_have_count(0)
    with screen_of(named, chromium, ADMIN) as screen:
        expect(screen.page.get_by_text(told)).to_be_visible()
        screen.page.screenshot(path=tmp_path / "home.png")
        screen.page.goto(f"{named.url}/hub/admin")
        expect(screen.page.get_by_text(told)).to_be_visible()
        screen.page.screenshot(path=tmp_path / "admin.png")


@pytest.mark.usefixtures("owner")
def test_who_may_open_sessions_finds_them_in_the_admins_table(
    named: Instance, chromium: Browser
) -> None:
    with screen_of(named, chromium, ADMIN) as screen:
        screen.page.goto(f"{named.url}/hub/admin")
        row = screen.page.get_by_test_id(f"user-row-{OWNER}")
        expect(row.get_by_role("button", name="Access Session")).to_be_visible()


# --- what a page of another user has no hold on ---


def test_the_hub_is_at_no_users_host(named: Instance, trap: HostileSession) -> None:
    with httpx.Client() as client:
        for host in (named.host_of(OWNER), named.host_of("cluster--service")):
            for path in ("/hub/login", "/hub/home", f"/hub/api/users/{OWNER}"):
                answer = client.get(f"{host}{path}")
                assert answer.status_code == 302, path
                assert answer.headers["Location"] == f"{named.url}{path}"
                assert not client.cookies
            form = {"username": USER, "password": PASSWORD}
            assert client.post(f"{host}/hub/login", data=form).status_code == 403
            assert client.post(f"{host}/hub/api/users/{OWNER}/tokens").status_code == 403
            assert not client.cookies


def test_it_cannot_read_the_hub_nor_the_visitors_own_session(page: Page, entered: Screen) -> None:
    targets = [
        f"{entered.portal.url}/hub/home",
        f"{entered.portal.url}/hub/api/user",
        f"{entered.own}/lab",
        f"{entered.own}/api/contents",
        f"{entered.portal.host_of('cluster--service')}/services/cluster/",
    ]
    for target in targets:
        said = page.evaluate(
            "url => fetch(url, {credentials: 'include'}).then(() => 'read', () => 'refused')",
            target,
        )
        assert said == "refused", target


def test_it_changes_nothing_at_the_hub_or_in_the_session(
    page: Page, entered: Screen, trap: HostileSession, user: Visitor
) -> None:
    forged = """([url, method, type]) => fetch(url, {
        method, mode: "no-cors", credentials: "include", body: "{}",
        headers: {"Content-Type": type},
    }).then(() => null, () => null)"""

    def terminals() -> set[str]:
        return {one["name"] for one in user.session("GET", "/api/terminals").json()}

    tokens = f"/users/{entered.name}/tokens"
    before = entered.ask_hub("GET", tokens)
    open_before = terminals()
    page.goto(trap.page)
    url = f"{entered.portal.url}/hub/api{tokens}"
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        page.evaluate(forged, [url, "POST", kind])
        page.evaluate(forged, [f"{entered.own}/api/terminals", "POST", kind])
    assert terminals() == open_before
    assert [one["id"] for one in entered.ask_hub("GET", tokens)[1]["api_tokens"]] == [
        one["id"] for one in before[1]["api_tokens"]
    ]


def test_it_opens_no_websocket_to_the_visitors_own_session(
    page: Page, entered: Screen, own: Screen, lab: Page
) -> None:
    paths = ("/api/events/subscribe", "/terminals/websocket/1", "/tools/digits/x", "/lsp/ws/x")
    for path in paths:
        assert page.evaluate(SOCKET, f"{entered.own}{path}".replace("http", "ws")) == "refused"
    url = f"{own.own}{paths[0]}".replace("http", "ws")
    assert lab.evaluate(SOCKET, url) == "open"


def test_it_has_no_hold_on_a_frame_or_a_window_of_the_hubs(page: Page, entered: Screen) -> None:
    look = """of => { try { return of().document.title; } catch (error) { return error.name; } }"""
    page.evaluate(
        """url => new Promise(resolve => {
            const frame = document.createElement("iframe");
            frame.onload = resolve;
            frame.src = url;
            document.body.append(frame);
        })""",
        f"{entered.portal.url}/hub/home",
    )
    shown = page.frames[1]
    assert not shown.url.startswith(entered.portal.url) or shown.locator("h1").count() == 0
    assert page.evaluate(f"() => ({look})(() => window.frames[0])") == "SecurityError"
    page.evaluate(
        """url => document.querySelector("button").onclick = () => {
            window.opened = window.open(url, "hub");
        }""",
        f"{entered.portal.url}/hub/home",
    )
    with page.expect_popup() as popup:
        page.get_by_role("button", name="Open").click()
    expect(popup.value.get_by_role("heading", name="Your session")).to_be_visible()
    assert popup.value.evaluate("() => window.opener") is None
    assert page.evaluate("() => window.opened.closed")
    popup.value.close()


def test_who_enters_is_written_down_and_seen_by_the_user(
    entered: Screen, owner: Visitor, logged_bytes: int
) -> None:
    await_hub_log(f"{entered.name} enters the session '' of {OWNER}", since=logged_bytes)
    seen = owner.session("GET", "/portal/visits").json()["visits"]
    assert [visit["name"] for visit in seen] == [entered.name]


def test_no_service_worker_is_for_more_than_its_own_folder(
    page: Page, trap: HostileSession
) -> None:
    with pytest.raises(Error, match="scope"):
        page.evaluate(
            "async url => { await navigator.serviceWorker.register(url, {scope: '/'}); }",
            trap.worker,
        )


def test_its_service_worker_is_for_its_own_host_only(
    page: Page, entered: Screen, trap: HostileSession
) -> None:
    page.evaluate(
        """async url => {
            await navigator.serviceWorker.register(url);
            await navigator.serviceWorker.ready;
        }""",
        trap.worker,
    )
    try:
        page.goto(f"{entered.portal.host_of(OWNER)}/user/{OWNER}/hostile/anything")
        assert page.content().count("taken over") == 1, "the worker works"
        for url in (f"{entered.portal.url}/hub/home", f"{entered.own}/lab"):
            page.goto(url)
            assert "taken over" not in page.content()
            assert page.evaluate("() => navigator.serviceWorker.controller") is None
    finally:
        page.goto(trap.page)
        page.evaluate(
            "async () => { for (const one of await navigator.serviceWorker.getRegistrations())"
            " await one.unregister(); }"
        )


def test_it_sees_no_cookie_of_the_hubs_nor_of_another_session(
    page: Page, entered: Screen, trap: HostileSession
) -> None:
    hubs = {
        cookie["name"]: cookie.get("value", "")
        for url in (f"{entered.portal.url}/hub/", f"{entered.own}/")
        for cookie in page.context.cookies(url)
    }
    # Which login the hub's tokens are of: no secret, and of no use without a token.
    common = {"jupyterhub-session-id"}
    secrets = [value for name, value in hubs.items() if name not in common]
    assert "__Host-jupyterhub-hub-login" in hubs
    assert f"__Host-jupyterhub-user-{entered.name}" in hubs
    assert "_xsrf" in hubs
    assert not any(value in page.evaluate("() => document.cookie") for value in secrets)
    came = json.dumps(trap.kept())
    assert trap.page.rpartition("/")[2] in came
    assert not any(value in came for value in secrets)


def test_a_cookie_it_sets_for_the_portals_name_changes_nobody(
    page: Page, entered: Screen, chromium: Browser
) -> None:
    tossed = {
        "__Host-jupyterhub-hub-login": "/",
        "jupyterhub-hub-login": "/hub/",
        "jupyterhub-session-id": "/hub/",
        "_xsrf": "/hub/",
        "__Host-service-cluster": "/services/",
        f"__Host-jupyterhub-user-{entered.name}": "/",
        f"__Host-jupyterhub-user-{entered.name}-oauth-state": "/",
    }
    for name, path in tossed.items():
        text = f"{name}=forged; domain={NAME}; path={path}; secure"
        page.evaluate("text => { document.cookie = text; }", text)
    try:
        there = {
            cookie["name"]
            for cookie in page.context.cookies(f"{entered.portal.url}/hub/x")
            if cookie.get("value") == "forged"
        }
        assert there == {"jupyterhub-hub-login", "jupyterhub-session-id", "_xsrf"}
        status, found = entered.ask_hub("GET", "/user")
        assert (status, found["name"]) == (200, entered.name)
        assert entered.ask_hub("POST", f"/users/{entered.name}/tokens", "{}")[0] == 201
        page.goto(f"{entered.own}/lab")
        expect(page.get_by_role("tab", name="Launcher").first).to_be_visible(timeout=90_000)
    finally:
        for name, path in tossed.items():
            page.context.clear_cookies(name=name, domain=f".{NAME}", path=path)


def test_it_cannot_log_a_browser_in_as_somebody_else(
    owner: Visitor, trap: HostileSession, chromium: Browser
) -> None:
    # A form's token that the hub gave to the page's owner, as if from the visitor's own browser.
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{owner.instance.url}/hub/login")
    agent = page.evaluate("() => navigator.userAgent")
    context.clear_cookies()
    with httpx.Client(headers={"User-Agent": agent}) as client:
        client.get(f"{owner.instance.url}/hub/login")
        token = client.cookies["_xsrf"]
    page.goto(f"{owner.instance.host_of(OWNER)}/user/{OWNER}/hostile/page")
    page.evaluate(
        """([token, name, action, fields]) => {
            document.cookie = `_xsrf=${token}; domain=${name}; path=/hub/; secure`;
            const form = document.createElement("form");
            Object.assign(form, {method: "post", action});
            for (const [name, value] of Object.entries({...fields, _xsrf: token}))
                form.append(Object.assign(document.createElement("input"), {name, value}));
            document.body.append(form);
            form.submit();
        }""",
        [
            token,
            NAME,
            f"{owner.instance.url}/hub/login?next=%2Fhub%2Fhome",
            {"username": OWNER, "password": PASSWORD},
        ],
    )
    expect(page.get_by_text("another page")).to_be_visible()
    names = {cookie["name"] for cookie in context.cookies(f"{owner.instance.url}/hub/")}
    assert "__Host-jupyterhub-hub-login" not in names
    context.close()


def test_the_visitors_rights_do_not_come_with_the_visit(
    page: Page, entered: Screen, owner: Visitor, user: Visitor, trap: HostileSession
) -> None:
    """What a session is given by the hub for its visitor says who that is, and opens no more."""
    tokens = [one["token"] for one in trap.kept() if "token" in one]
    assert tokens
    url, name = entered.portal.url, entered.name
    hosts = entered.portal.host_of
    for token in tokens:
        bearer = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{url}/hub/api/user", headers=bearer).json()["name"] in (name, OWNER)
        for method, target in (
            ("GET", f"{url}/hub/api/users"),
            ("GET", f"{url}/hub/api/users/{name}/tokens"),
            ("POST", f"{url}/hub/api/users/{name}/tokens"),
            ("DELETE", f"{url}/hub/api/users/{name}/server"),
            ("GET", f"{hosts(name)}/user/{name}/api/contents"),
            ("GET", f"{hosts('cluster--service')}/services/cluster/api/v1/cluster"),
        ):
            answer = httpx.request(method, target, headers=bearer)
            assert answer.status_code in (403, 404), (target, answer.text)
