"""What the hub does with somebody who is logged in when the directory changes its mind."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.checkout import PYTHONPATH
from tests.instance import trust
from tests.integration.authentication import slapd
from tests.integration.authentication.logins import reader
from tests.integration.authentication.slapd import GROUP_BASE, PASSWORD, USER_BASE, Slapd, person
from tests.network.sockets import free_port
from tests.waiting import until

CONFIG = Path(__file__).with_name("hub_config.py")


@pytest.fixture(scope="module")
def hub(directory: Slapd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A hub; its address."""
    url = f"http://127.0.0.1:{free_port()}"
    traits = {
        "servers": [directory.url],
        "tls_strategy": "insecure",
        "user_search_base": slapd.USER_BASE,
        "group_search_base": slapd.GROUP_BASE,
        "allowed_groups": ["unix-primary"],
        "admin_groups": ["portal-admins"],
        "next_server_seconds": 0.2,
        "refresh_pause": 0,
        **reader(),
    }
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": PYTHONPATH,
        "TEST_HUB": json.dumps({"url": url, "directory": traits}),
    }
    argv = [sys.executable, "-m", "jupyterhub", "-f", str(CONFIG)]
    folder = tmp_path_factory.mktemp("hub")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, env=environment, cwd=folder, stderr=log)
    try:
        until(lambda: answers(url), seconds=60, what="the hub answers")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/hub/api", verify=trust()).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def browser(hub: str, directory: Slapd, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """Somebody's browser, logged in; the account is new for each test."""
    name = f"p{request.node.name.replace('_', '-')}"[:32]
    directory.change(person(name), "ldapadd")
    with httpx.Client(base_url=hub, headers={"X-Name": name}, timeout=30) as client:
        client.get("/hub/login")
        form = {"username": name, "password": PASSWORD, "_xsrf": client.cookies["_xsrf"]}
        assert client.post("/hub/login", data=form).status_code == 302
        yield client
    directory.change(f"dn: uid={name},{USER_BASE}\nchangetype: delete\n")


def name_of(browser: httpx.Client) -> str:
    return browser.headers["X-Name"]


def start(browser: httpx.Client, token: str = "") -> int:
    """Start a server, as the form does or with a token; the answer's status."""
    url = f"/hub/api/users/{name_of(browser)}/servers/"
    if token:
        headers = {"Authorization": f"token {token}"}
        return httpx.post(f"{browser.base_url}{url}", headers=headers, timeout=30).status_code
    headers = {"X-XSRFToken": browser.cookies["_xsrf"]}
    return browser.post(url, headers=headers).status_code


def token_of(browser: httpx.Client) -> str:
    answer = browser.post(
        f"/hub/api/users/{name_of(browser)}/tokens",
        headers={"X-XSRFToken": browser.cookies["_xsrf"]},
        json={},
    )
    return str(answer.json()["token"])


def close(directory: Slapd, name: str) -> None:
    change = "add: objectClass\nobjectClass: closable\n-\nadd: nsAccountLock\nnsAccountLock: TRUE\n"
    directory.change(f"dn: uid={name},{USER_BASE}\nchangetype: modify\n{change}")


def test_who_is_as_before_starts(browser: httpx.Client) -> None:
    assert start(browser) == 202


def test_who_is_closed_starts_nothing(browser: httpx.Client, directory: Slapd) -> None:
    token = token_of(browser)
    close(directory, name_of(browser))
    assert start(browser) == 403
    assert start(browser, token) == 403
    assert browser.get(f"/hub/spawn/{name_of(browser)}").status_code == 403


def test_the_groups_are_those_of_the_start(browser: httpx.Client, directory: Slapd) -> None:
    change = f"dn: cn=data-scientists,{GROUP_BASE}\nchangetype: modify\n{{}}: memberUid\n"
    change += f"memberUid: {name_of(browser)}\n"
    directory.change(change.format("add"))
    assert start(browser) == 202
    groups = browser.get("/hub/api/user").json()["groups"]
    directory.change(change.format("delete"))
    assert set(groups) == {"data-scientists", "unix-primary"}


def test_a_directory_that_is_silent_stops_no_start(browser: httpx.Client, directory: Slapd) -> None:
    with directory.silent():
        assert start(browser) == 202
