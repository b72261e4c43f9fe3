"""One host name for all: a session's pages open in its own user's browser and in no other."""

import time
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import httpx
import pytest

from dsportal.hub.patches.gate import cookie_name, cookie_value
from tests.hostile.impostor import Impostor, impostor
from tests.instance import ADMIN, ENTERER, SETTINGS, USERS, Instance, trust
from tests.network.wire import Wire
from tests.visitor import Visitor, session_of

COOKIE = cookie_name(is_encrypted=True)


@pytest.fixture(scope="module")
def mallory(portal: Instance) -> Iterator[Visitor]:
    """A user whose session is a program of their own."""
    with session_of(portal, USERS[0]) as mallory:
        yield mallory


@pytest.fixture(scope="module")
def hostile(mallory: Visitor) -> Iterator[Impostor]:
    with impostor(mallory) as found:
        yield found


@pytest.fixture(scope="module")
def alice(portal: Instance) -> Iterator[Visitor]:
    alice = Visitor(portal, USERS[1])
    alice.log_in().raise_for_status()
    yield alice
    alice.close()


def gate_cookie(user: Visitor) -> str:
    (found,) = (cookie.value for cookie in user.http.cookies.jar if cookie.name == COOKIE)
    assert found is not None
    return found


def test_a_users_own_browser_reaches_it(mallory: Visitor, hostile: Impostor) -> None:
    answer = mallory.http.get(f"/user/{mallory.name}/own")
    assert "hostile" in answer.text
    assert hostile.was_asked_for("own")


def test_another_users_browser_does_not(
    mallory: Visitor, alice: Visitor, hostile: Impostor
) -> None:
    page = alice.http.get(f"/user/{mallory.name}/linked")
    assert page.status_code == 403
    assert "another user&#39;s session" in page.text
    assert not hostile.was_asked_for("linked")


def test_a_login_does_not_lead_there(portal: Instance, mallory: Visitor, hostile: Impostor) -> None:
    victim = Visitor(portal, USERS[1])
    start = victim.http.get(f"/user/{mallory.name}/after-login")
    assert "/hub/login" in str(start.url)
    victim.http.post(
        str(start.url),
        data={"username": victim.name, "password": "portal", "_xsrf": victim.xsrf()},
    )
    assert not hostile.was_asked_for("after-login")
    assert victim.name in victim.http.get("/hub/home").text
    victim.close()


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_no_method_gets_through(
    mallory: Visitor, alice: Visitor, hostile: Impostor, method: str
) -> None:
    path = f"/user/{mallory.name}/method-{method}"
    answer = alice.http.request(method, path, follow_redirects=False)
    assert answer.status_code in (302, 403)
    assert not hostile.was_asked_for(f"method-{method}")


ADDRESSES = (
    "/user/NAME",
    "/user/NAME?there",
    "/user/NAME/%2e%2e/OWN/there",
    "/user/OWN/../NAME/there",
    "/user/OWN/%2e%2e/NAME/there",
    "/user/OWN%2f..%2fNAME/there",
    "/user/NAME%2f..%2fOWN/there",
    "/user/OWN\\..\\NAME\\there",
    "//user/NAME/there",
    "/hub/../user/NAME/there",
    "/hub/%2e%2e/user/NAME/there",
    "/%75ser/NAME/there",
    "/user//NAME/there",
    "/user/./NAME/there",
    "/hub/static/..%2f..%2fuser/NAME/there",
    "http://127.0.0.1/user/NAME/there",
    "/user/NAME/there#/user/OWN/",
    "/user/NAME;/user/OWN/there",
)


@pytest.mark.parametrize("form", ADDRESSES)
@pytest.mark.parametrize("is_websocket", [False, True])
def test_however_the_address_is_written(
    portal: Instance,
    mallory: Visitor,
    alice: Visitor,
    hostile: Impostor,
    form: str,
    is_websocket: bool,
) -> None:
    before = len(hostile.seen())
    address = form.replace("NAME", mallory.name).replace("OWN", alice.name)
    lines = [f"GET {address} HTTP/1.1", f"Host: {urlsplit(portal.url).netloc}"]
    lines += [f"Cookie: {COOKIE}={gate_cookie(alice)}"]
    if is_websocket:
        lines += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
        lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]
    with closing(Wire(portal)) as wire:
        wire.send("\r\n".join([*lines, "", ""]).encode())
        assert wire.first_status() != 101
    assert len(hostile.seen()) == before


def forged(token: str, user: str, seconds: int) -> str:
    return f"{COOKIE}={cookie_value(token, user, round(time.time()) + seconds)}"


def test_cookies_that_are_not_the_hubs_open_nothing(
    portal: Instance, mallory: Visitor, alice: Visitor, hostile: Impostor
) -> None:
    expires, name, signature = gate_cookie(mallory).split(".")
    given = [
        forged("guess", mallory.name, 3600),
        f"{COOKIE}={int(expires) + 1}.{name}.{signature}",
        f"{COOKIE}={expires}.{name}.",
        f"{COOKIE}={expires}.{name}",
        f"{COOKIE}={expires}.{name}.{'ü' * 43}",
        f"{COOKIE}=",
        # Another page of the host put the attacker's beside the victim's own.
        f"{COOKIE}={gate_cookie(mallory)}; {COOKIE}={gate_cookie(alice)}",
        f"{COOKIE}={gate_cookie(alice)}; {COOKIE}={gate_cookie(mallory)}",
        f"x{COOKIE}={gate_cookie(mallory)}",
    ]
    for cookie in given:
        headers = {b"Cookie": cookie.encode()}
        url = f"{portal.url}/user/{mallory.name}/forged"
        assert httpx.get(url, headers=headers, verify=trust()).status_code in (302, 400), cookie
    assert not hostile.was_asked_for("forged")


def test_a_login_that_is_over_opens_nothing(
    portal: Instance, mallory: Visitor, hostile: Impostor
) -> None:
    token = next(
        line.split("=", 1)[1]
        for line in (SETTINGS.parent / "proxy.env").read_text().splitlines()
        if line.startswith("CONFIGPROXY_AUTH_TOKEN=")
    )
    url = f"{portal.url}/user/{mallory.name}/late"
    late, now = (forged(token, mallory.name, seconds) for seconds in (-1, 60))
    assert httpx.get(url, headers={"Cookie": late}, verify=trust()).status_code == 302
    assert not hostile.was_asked_for("late")
    assert httpx.get(url, headers={"Cookie": now}, verify=trust()).status_code == 200


def test_log_out_takes_the_cookie_away_and_another_login_replaces_it(portal: Instance) -> None:
    user = Visitor(portal, USERS[0])
    user.log_in()
    first = gate_cookie(user)
    user.http.get("/hub/logout?keep=1")
    assert COOKIE not in {cookie.name for cookie in user.http.cookies.jar}
    user.log_in()
    user.name = USERS[1]
    user.log_in()
    assert gate_cookie(user) != first
    user.close()


@pytest.mark.parametrize("name", [ENTERER, ADMIN])
def test_who_may_enter_sessions_or_is_an_admin_does_not_do_so_with_a_browser(
    portal: Instance, mallory: Visitor, hostile: Impostor, name: str
) -> None:
    enterer = Visitor(portal, name)
    enterer.log_in()
    assert enterer.http.get(f"/user/{mallory.name}/entered").status_code == 403
    assert not hostile.was_asked_for("entered")
    enterer.close()


def test_a_session_cannot_be_shared(mallory: Visitor, alice: Visitor) -> None:
    api = f"{mallory.instance.url}/hub/api"
    bearer = {"Authorization": f"Bearer {mallory.token()}"}
    assert httpx.get(f"{api}/user", headers=bearer, verify=trust()).json()["name"] == mallory.name
    for path, body in (
        (f"shares/{mallory.name}/", {"user": alice.name}),
        (f"share-codes/{mallory.name}/", {}),
    ):
        answer = httpx.post(f"{api}/{path}", headers=bearer, json=body, verify=trust())
        assert answer.status_code in (403, 404), answer.text


def test_a_session_tells_browsers_nothing_beyond_its_own_addresses(
    mallory: Visitor, hostile: Impostor
) -> None:
    answer = mallory.http.get(f"/user/{mallory.name}/page")
    names = {cookie.partition("=")[0] for cookie in answer.headers.get_list("set-cookie")}
    assert names == {"ours", "named", "here"}
    for name in ("Service-Worker-Allowed", "Clear-Site-Data", "Alt-Svc"):
        assert name not in answer.headers
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self'"
    assert answer.headers["Server"] == "portal"
    assert "Cookie" in answer.headers["Vary"]


def test_no_session_puts_a_service_worker_into_a_browser(
    mallory: Visitor, hostile: Impostor
) -> None:
    path = f"/user/{mallory.name}/worker.js"
    assert mallory.http.get(path, headers={"Service-Worker": "script"}).status_code == 403
    assert not hostile.was_asked_for("worker.js")


def test_a_token_is_the_sessions_to_judge(
    portal: Instance, mallory: Visitor, hostile: Impostor
) -> None:
    url = f"{portal.url}/user/{mallory.name}/with-token"
    assert httpx.get(url, headers={"Authorization": "token abc"}, verify=trust()).status_code == 200
    basic = httpx.get(f"{url}-basic", auth=("user", "password"), verify=trust())
    assert basic.status_code == 302
    assert not hostile.was_asked_for("with-token-basic")
