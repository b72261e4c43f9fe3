"""Web tools: DIGITS' stand-in, as the settings of the demo cluster have it."""

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from dsportal.session.tools import words
from tests.instance import USERS, Instance, trust
from tests.processes import running
from tests.visitor import Visitor, session_of
from tests.waiting import until

PAGE = "/tools/digits/"
VISIT = {"Accept": "text/html"}
PORT = 5000


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USERS[0]) as user:
        yield user


@pytest.fixture(scope="module")
def other(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USERS[1]) as other:
        yield other


def home_of(visitor: Visitor) -> Path:
    return Path(pwd.getpwnam(visitor.name).pw_dir)


def opened(visitor: Visitor) -> httpx.Response:
    """Open DIGITS as a browser does: its first pages may say that it starts."""

    def answer() -> httpx.Response | None:
        given = request(visitor, "GET", PAGE, headers=VISIT)
        return None if given.status_code == 202 else given

    given = until(answer, seconds=60, what="DIGITS answers")
    assert given is not None
    return given


def request(
    visitor: Visitor, method: str, path: str, headers: dict[str, str] | None = None
) -> httpx.Response:
    own = {"Authorization": f"token {visitor.token()}", **(headers or {})}
    url = f"{visitor.instance.url}/user/{visitor.name}{path}"
    # Just after its start, a session sends whoever asks to the same address once more.
    return httpx.request(
        method, url, headers=own, timeout=60, follow_redirects=True, verify=trust()
    )


OFFERED = {
    "digits": "DIGITS (stand-in)",
    "mlflow": "MLflow",
    "model-server": "Model server",
    "vscode": "VS Code",
}


def pids_of_digits(visitor: Visitor) -> list[int]:
    return [process.pid for process in running("digits-devserver", user=visitor.name)]


def test_a_tool_is_offered_where_its_module_is(user: Visitor) -> None:
    assert set(user.instance.settings["tools"]) == {*OFFERED, "elsewhere"}
    assert titles(user) == OFFERED


def titles(visitor: Visitor) -> dict[str, str]:
    """Return the tools that are there, by their names."""
    cards = visitor.session("GET", "/portal/tools").json()["tools"]
    return {card["name"]: card["title"] for card in cards}


def test_two_users_of_a_node_have_one_each_on_the_same_port(user: Visitor, other: Visitor) -> None:
    for visitor in (user, other):
        answer = opened(visitor)
        assert answer.status_code == 200, answer.text
        assert f"Jobs in <code>{home_of(visitor)}/digits-logs</code>" in answer.text
    cards = user.session("GET", "/portal/tools").json()["tools"]
    states = {card["name"]: card["state"] for card in cards}
    assert states == dict.fromkeys(OFFERED, "stopped") | {"digits": "running"}


REACH = """
import glob, os, socket
try:
    socket.create_connection(("127.0.0.1", {port}), 5)
    print("port: connected")
except OSError as error:
    print("port:", error.strerror)
try:
    socket.socket(socket.AF_UNIX).connect({path!r})
    print("socket: connected")
except OSError as error:
    print("socket:", error.strerror)
try:
    os.readlink("/proc/{pid}/ns/net")
    print("network: seen")
except OSError as error:
    print("network:", error.strerror)
"""


def test_the_neighbour_on_the_node_cannot_reach_a_tool(user: Visitor, other: Visitor) -> None:
    assert opened(user).status_code == 200
    (pid,) = pids_of_digits(user)
    runtime = user.run("import os; print(os.environ['JUPYTER_RUNTIME_DIR'])").strip()
    socket = f"{runtime}/tool-digits.sock"
    assert Path(socket).is_socket()
    # The neighbour's own DIGITS listens on this port too, and even that one is not to be seen.
    tried = other.run(REACH.format(port=PORT, path=socket, pid=pid))
    assert tried.splitlines() == [
        "port: Connection refused",
        "socket: Permission denied",
        "network: Permission denied",
    ]
    url = f"{user.instance.url}/user/{user.name}{PAGE}"
    assert httpx.get(url, verify=trust()).status_code in (302, 403)
    token = {"Authorization": f"token {other.token()}"}
    assert httpx.get(url, headers=token | VISIT, verify=trust()).status_code in (302, 403)


def test_the_tool_reaches_nothing_but_itself(user: Visitor) -> None:
    assert opened(user).status_code == 200
    (pid,) = pids_of_digits(user)
    interfaces = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in interfaces] == ["lo"]
    assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")


def test_a_tool_sees_neither_cookie_nor_token(user: Visitor) -> None:
    assert opened(user).status_code == 200
    cookies = {"Cookie": "_xsrf=1; theme=dark; jupyterhub-session-id=2"}
    seen = request(user, "GET", f"{PAGE}headers", headers=VISIT | cookies).text.lower()
    assert "\ncookie: theme=dark\n" in seen
    assert "authorization" not in seen
    assert "token" not in seen
    (pid,) = pids_of_digits(user)
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"DIGITS_JOBS_DIR=" in environment
    assert b"JUPYTERHUB" not in environment


def test_a_page_of_another_user_cannot_make_a_tool_do_something(user: Visitor) -> None:
    assert opened(user).status_code == 200
    own = f"/user/{user.name}{PAGE}"
    # With the cookies of a browser, as a form on any page would be sent.
    assert user.http.get(own, headers=VISIT).status_code == 200
    others_page = {"Referer": f"{user.instance.url}/user/{USERS[1]}/tools/digits/"}
    for headers in ({}, others_page):
        assert user.http.post(f"{own}jobs", headers=headers).status_code == 403
    own_page = {"Referer": f"{user.instance.url}{own}"}
    made = user.http.post(f"{own}jobs", headers=own_page)
    assert made.status_code == 200
    assert "-job</li>" in made.text


def test_a_tool_that_fails_says_why_and_can_be_tried_again(user: Visitor) -> None:
    folder = home_of(user) / "digits-logs"
    stop(user)
    user.instance.slurm("/bin/rm", "-rf", str(folder), user=user.name)
    user.instance.slurm("/usr/bin/touch", str(folder), user=user.name)
    try:
        answer = opened(user)
    finally:
        user.instance.slurm("/bin/rm", str(folder), user=user.name)
    assert answer.status_code == 502
    assert words.ended("DIGITS (stand-in)", 1) in answer.text
    assert "FileExistsError" in answer.text
    assert "Try Again" in answer.text
    assert opened(user).status_code == 200
    assert folder.owner() == user.name


def stop(user: Visitor) -> None:
    assert user.session("DELETE", "/portal/tools/digits").status_code == 204


def test_a_stopped_tool_is_started_by_who_opens_it_only(user: Visitor) -> None:
    assert opened(user).status_code == 200
    stop(user)
    assert pids_of_digits(user) == []
    answer = request(user, "GET", PAGE)
    assert answer.status_code == 503
    assert pids_of_digits(user) == []
    assert opened(user).status_code == 200
    assert user.session("DELETE", "/portal/tools/no-such").status_code == 404


def test_a_link_on_another_page_asks_first(user: Visitor) -> None:
    stop(user)
    own = f"/user/{user.name}{PAGE}"
    asked = request(user, "GET", PAGE, headers=VISIT | {"Sec-Fetch-Site": "cross-site"})
    assert "Start DIGITS (stand-in)?" in asked.text
    assert '<form method="post"' in asked.text
    # A browser that says nothing of the page that it comes from, as where there is no TLS.
    assert "Start DIGITS (stand-in)?" in user.http.get(own, headers=VISIT).text
    assert pids_of_digits(user) == []
    button = f"/user/{user.name}/portal/tools/digits/start"
    assert user.http.post(button).status_code == 403
    assert user.session("GET", "/portal/tools").json()["tools"][0]["state"] == "stopped"
    token = {"_xsrf": user.xsrf(f"/user/{user.name}/")}
    begun = user.http.post(button, data=token, follow_redirects=False)
    assert (begun.status_code, begun.headers["Location"]) == (303, own)
    assert opened(user).status_code == 200


def test_no_answer_of_a_tool_names_a_version(user: Visitor) -> None:
    assert opened(user).headers["Server"] == "portal"
    assert user.session("GET", "/api/status").headers["Server"] == "portal"


def test_tools_end_with_the_session(portal: Instance) -> None:
    with session_of(portal, USERS[2]) as leaver:
        assert opened(leaver).status_code == 200
        assert pids_of_digits(leaver)
        leaver.stop()
        until(lambda: not pids_of_digits(leaver), seconds=20, what="DIGITS has ended")
