"""Sessions on host names of their own (``hub.subdomain_host``), and what a hub without TLS says.

The instance gets both by a file in ``conf.d`` and an option of its proxy, for this module only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import faults
from tests.instance import ADMIN, PASSWORD, SETTINGS, USERS, Instance
from tests.waiting import until

pytestmark = pytest.mark.browser
USER, OTHER = USERS[:2]
OPTION = "--host-routing"


@pytest.fixture(scope="module")
def host(portal: Instance) -> Iterator[str]:
    """Give the instance's address with a name, below which users have names of their own."""
    address = f"https://portal.test:{urlsplit(portal.url).port}"
    ours = SETTINGS.parent / "conf.d" / "host_names.py"
    ours.write_text(
        f'c.JupyterHub.subdomain_host = "{address}"\n'
        "c.JupyterHub.cookie_host_prefix_enabled = True\n"
        'c.JupyterHub.template_vars["is_encrypted"] = False\n'
    )
    try:
        with proxy_by_host():
            restart_hub()
            yield address
    finally:
        ours.unlink()
        faults.restart_hub(portal)


@contextmanager
def proxy_by_host() -> Iterator[None]:
    """Let the proxy go by host names, as the role does with ``portal_subdomain_host``."""
    conf = SETTINGS.parent / "supervisor" / "services" / "proxy.conf"
    before = conf.read_text()
    try:
        change(conf, before.replace(" --log-level", f" {OPTION} --log-level"))
        yield
    finally:
        change(conf, before)


def change(conf: Path, text: str) -> None:
    conf.write_text(text)
    faults.service("reread", "")
    faults.service("update", "proxy")


def restart_hub() -> None:
    """Restart it; the fixtures' own way asks by an address that is nobody's name here."""
    faults.service("restart", "hub")


@pytest.fixture(scope="module")
def page(host: str, chromium: Browser) -> Iterator[Page]:
    """A user's page, with a session that runs."""
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(60_000)
    page = context.new_page()
    log_in(page, host, USER)
    ask(page, "POST", f"/hub/api/users/{USER}/server", '{"gpus": 0}')
    until(lambda: is_ready(page), seconds=90, what="the session is ready")
    page.goto(f"{host}/hub/user/{USER}/lab")
    expect(page.get_by_role("tab", name="Launcher")).to_be_visible(timeout=90_000)
    yield page
    page.goto(f"{host}/hub/home")
    ask(page, "DELETE", f"/hub/api/users/{USER}/server", None)
    until(lambda: "stopped" in servers(page), seconds=60, what="the session is over")
    context.close()


def log_in(page: Page, host: str, name: str) -> None:
    until(lambda: answers(page, host), seconds=60, what="the hub answers")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Your session")).to_be_visible()


def answers(page: Page, host: str) -> bool:
    found = page.goto(f"{host}/hub/login?next=%2Fhub%2Fhome")
    return found is not None and found.status == 200


ASK = """async ([method, path, body]) => {
    const headers = {
        "X-XSRFToken": window.jhdata.xsrf_token,
        "Content-Type": "application/json",
    };
    return (await fetch(path, {method, body, headers})).status;
}"""


def ask(page: Page, method: str, path: str, body: str | None) -> None:
    """Ask the hub as its pages' scripts do."""
    status = page.evaluate(ASK, [method, path, body])
    assert status in (201, 202, 204), status


def is_ready(page: Page) -> bool:
    found = page.evaluate(
        "async name => (await (await fetch('/hub/api/users/' + name, {headers: "
        "{'X-XSRFToken': window.jhdata.xsrf_token}})).json()).servers['']?.ready === true",
        USER,
    )
    return bool(found)


def servers(page: Page) -> str:
    found = page.evaluate(
        "async name => Object.keys((await (await fetch('/hub/api/users/' + name, {headers: "
        "{'X-XSRFToken': window.jhdata.xsrf_token}})).json()).servers).length",
        USER,
    )
    return "running" if found else "stopped"


def test_a_session_has_its_users_host_name(page: Page, host: str) -> None:
    name = urlsplit(page.url).hostname
    assert name == f"{USER}.portal.test"


def test_a_sessions_page_cannot_ask_the_hub_nor_another_users_session(
    page: Page, host: str
) -> None:
    port = urlsplit(host).port
    for target in (f"{host}/hub/home", f"https://{OTHER}.portal.test:{port}/user/{OTHER}/lab"):
        said = page.evaluate(
            "url => fetch(url, {credentials: 'include'}).then(() => 'read', () => 'refused')",
            target,
        )
        assert said == "refused", target


def test_the_hubs_cookies_do_not_go_to_a_sessions_host(page: Page, host: str) -> None:
    sent = {cookie["name"] for cookie in page.context.cookies(page.url)}
    hubs = {cookie["name"] for cookie in page.context.cookies(f"{host}/hub/")}
    login = {name for name in hubs if "hub-login" in name}
    assert login
    assert not login & sent


def test_a_sessions_page_cannot_set_a_cookie_for_the_hub(page: Page, host: str) -> None:
    page.evaluate(
        "document.cookie = '__Host-jupyterhub-hub-login=forged; domain=portal.test; path=/; secure'"
    )
    forged = [
        cookie for cookie in page.context.cookies(f"{host}/hub/") if cookie.get("value") == "forged"
    ]
    assert forged == []


def test_our_own_routes_work_there(page: Page) -> None:
    status = page.evaluate(
        """path => fetch(path, {
            headers: {"X-XSRFToken": document.cookie.match(/_xsrf=([^;]+)/)[1]},
        }).then(answer => answer.status)""",
        f"/user/{USER}/portal/clock",
    )
    assert status == 200


def test_admins_and_nobody_else_are_told_that_passwords_are_not_encrypted(
    page: Page, host: str, chromium: Browser, tmp_path: Path
) -> None:
    told = "Passwords are not encrypted."
    tab = page.context.new_page()
    tab.goto(f"{host}/hub/home")
    expect(tab.get_by_role("heading", name="Your session")).to_be_visible()
    expect(tab.get_by_text(told)).to_have_count(0)
    tab.close()
    admins = chromium.new_context()
    tab = admins.new_page()
    log_in(tab, host, ADMIN)
    expect(tab.get_by_text(told)).to_be_visible()
    tab.screenshot(path=tmp_path / "home.png")
    tab.goto(f"{host}/hub/admin")
    expect(tab.get_by_text(told)).to_be_visible()
    tab.screenshot(path=tmp_path / "admin.png")
    admins.close()
