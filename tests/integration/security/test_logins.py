"""Logins: how often one may try, how long one counts, and what a logout ends."""

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tornado.web import create_signed_value, decode_signed_value

from dsportal.authentication.attempts import PAIR
from tests.instance import (
    FOLDER_NAME,
    LOGS,
    PASSWORD,
    USERS,
    Instance,
    await_hub_log,
    hub_log,
)
from tests.visitor import Visitor
from tests.waiting import until

VICTIM = USERS[0]
LOGIN = "jupyterhub-hub-login"
DAY = 86_400
INVALID_CREDENTIALS = 49
"""Of LDAP (RFC 4511)."""
SECRET = "correct horse battery staple"

From = Callable[[str, str], Visitor]


@pytest.fixture
def visitor_from(portal: Instance) -> Iterator[From]:
    """Make users with browsers at an address of their own; all of 127.0.0.0/8 is this machine."""
    visitors: list[Visitor] = []

    def make(address: str, name: str) -> Visitor:
        visitor = Visitor(portal, name)
        visitor.http.close()
        transport = httpx.HTTPTransport(local_address=address)
        visitor.http = httpx.Client(base_url=portal.url, timeout=60, transport=transport)
        visitors.append(visitor)
        return visitor

    yield make
    for visitor in visitors:
        visitor.close()


def address(number: int, net: int = random.randrange(1, 250)) -> str:  # noqa: S311
    """Give an address that no earlier run of these tests has used up."""
    return f"127.{net}.0.{number}"


def fail_until_refused(visitor: Visitor) -> httpx.Response:
    """Try wrong passwords until it is too often; a slow machine lets a few more pass."""
    for _ in range(PAIR.free + 4):
        answer = visitor.log_in(SECRET)
        if answer.status_code == 429:
            break
        assert answer.status_code == 403
    return answer


def test_log_in_is_limited_and_says_how_long_to_wait(visitor_from: From) -> None:
    before = (LOGS / "hub.log").stat().st_size
    attacker = visitor_from(address(21), VICTIM)
    refused = fail_until_refused(attacker)
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert "Too many" in refused.text
    # The right password is no way round it, and tells nothing.
    assert attacker.log_in(PASSWORD).status_code == 429
    who = f"Login of '{VICTIM}' from {address(21)}"

    def is_written() -> bool:
        # At most once a second, whoever is held up.
        assert attacker.log_in(PASSWORD).status_code == 429
        return f"{who} held up for" in hub_log(before)

    until(is_written, seconds=10, what="who is held up is in the log")
    written = hub_log(before)
    assert f"{who} refused: wrong name or password" in written
    assert SECRET not in written


def test_an_attacker_with_the_users_name_does_not_keep_the_user_out(visitor_from: From) -> None:
    assert visitor_from(address(22), USERS[1]).log_in().status_code == 302
    attacker = visitor_from(address(23), USERS[1])
    assert fail_until_refused(attacker).status_code == 429
    assert visitor_from(address(22), USERS[1]).log_in().status_code == 302


@pytest.fixture
def locked_in_the_directory(portal: Instance) -> Iterator[str]:
    """Somebody whose password was guessed at in the directory itself until that took no more."""
    ldap = portal.settings["authentication"]["ldap"]
    dn = f"uid={USERS[3]},{ldap['user_base']}"
    guess = ["/usr/bin/ldapwhoami", "-x", "-H", ldap["servers"][0], "-D", dn, "-w", SECRET]
    for _ in range(100):
        done = subprocess.run(guess, check=False, capture_output=True, timeout=30)
        assert done.returncode == INVALID_CREDENTIALS
    yield USERS[3]
    socket = quote(f"/run/{FOLDER_NAME}/slapd/ldapi", safe="")
    unlock = ["/usr/bin/ldapmodify", "-Q", "-Y", "EXTERNAL", "-H", f"ldapi://{socket}"]
    change = f"dn: {dn}\nchangetype: modify\ndelete: pwdAccountLockedTime\n"
    subprocess.run(unlock, input=change, text=True, check=True, capture_output=True, timeout=30)


def test_guesses_past_the_login_page_lock_the_account_which_is_said(
    visitor_from: From, locked_in_the_directory: str
) -> None:
    refused = visitor_from(address(24), locked_in_the_directory).log_in()
    assert refused.status_code == 429
    assert "Your account is locked" in refused.text


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Client-Ip"])
def test_a_client_cannot_choose_its_address(visitor_from: From, header: str) -> None:
    own = address(30 + len(header))
    attacker = visitor_from(own, f"nobody-{header.lower()}")
    before = (LOGS / "hub.log").stat().st_size
    for number in range(PAIR.free + 4):
        attacker.http.headers[header] = f"192.0.2.{number}"
        if (answer := attacker.log_in(SECRET)).status_code == 429:
            break
    assert answer.status_code == 429
    await_hub_log(f"from {own} refused", since=before)
    assert "192.0.2." not in hub_log(before)


def login_cookie(visitor: Visitor) -> str:
    (cookie,) = [one for one in visitor.http.cookies.jar if one.name == LOGIN]
    return str(cookie.value)


def test_a_login_ends_after_the_days_that_are_set(portal: Instance, visitor_from: From) -> None:
    visitor = visitor_from(address(50), VICTIM)
    visitor.log_in()
    state = Path(portal.settings["hub"]["state_dir"])
    secret = bytes.fromhex((state / "jupyterhub_cookie_secret").read_text().strip())
    value = decode_signed_value(secret, LOGIN, login_cookie(visitor).strip('"'))
    assert value is not None
    for age_days, status in ((6.9, 200), (7.1, 302)):
        made = partial(float, time.time() - age_days * DAY)
        old = create_signed_value(secret, LOGIN, value, clock=made)
        page = httpx.get(f"{portal.url}/hub/home", cookies={LOGIN: old.decode()})
        assert page.status_code == status, age_days


def test_the_cookies_of_a_login_are_for_http_and_this_site_only(visitor_from: From) -> None:
    visitor = visitor_from(address(51), VICTIM)
    answer = visitor.log_in()
    cookies = answer.headers.get_list("set-cookie")
    named = {line.split("=")[0]: line for line in cookies}
    assert LOGIN in named
    for name, line in named.items():
        assert "SameSite=Lax" in line
        assert "HttpOnly" in line or name == "_xsrf", line
    assert "Path=/hub/" in named[LOGIN]


def tokens_of(visitor: Visitor) -> list[dict[str, Any]]:
    return list(visitor.api("GET", f"/users/{visitor.name}/tokens").json()["api_tokens"])


def seconds_left(moment: str) -> float:
    return (
        time.mktime(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone - time.time()
    )


def test_every_token_ends(owner: Visitor) -> None:
    owner.http.get(f"/user/{owner.name}/api/status")
    owner.http.get("/services/cluster/")
    made = owner.api("POST", f"/users/{owner.name}/tokens", json={"note": "x"}).json()
    assert 0 < seconds_left(made["expires_at"]) <= 90 * DAY
    for_good = {"note": "x", "expires_in": 91 * DAY}
    assert owner.api("POST", f"/users/{owner.name}/tokens", json=for_good).status_code == 400
    of_browsers = [one for one in tokens_of(owner) if one.get("session_id")]
    assert len(of_browsers) >= 1
    for one in of_browsers:
        assert 0 < seconds_left(one["expires_at"]) <= DAY
    owner.api("DELETE", f"/users/{owner.name}/tokens/{made['id']}").raise_for_status()
    gone = {"Authorization": f"token {made['token']}"}
    assert httpx.get(f"{owner.instance.url}/hub/api/user", headers=gone).status_code == 403


def test_a_logout_ends_the_login_everywhere_and_no_session(owner: Visitor) -> None:
    visitor = Visitor(owner.instance, owner.name)
    visitor.log_in()
    visitor.http.get(f"/user/{owner.name}/lab")
    token_ids = {one["id"] for one in tokens_of(visitor) if one.get("session_id")}
    kept = {cookie.name: cookie.value for cookie in visitor.http.cookies.jar}
    before = {one["id"] for one in tokens_of(owner)}
    visitor.http.get("/hub/logout?keep=1")
    after = {one["id"] for one in tokens_of(owner)}
    assert visitor.api("GET", "/user").status_code == 403
    ended = before - after
    assert ended <= token_ids
    assert len(ended) >= 1
    visitor.close()
    assert f"jupyterhub-user-{owner.name}" in kept
    # The other browser of the same user, and the session, go on.
    assert owner.api("GET", "/user").status_code == 200
    assert owner.server() is not None
