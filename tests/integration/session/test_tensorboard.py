"""TensorBoard in a session, asked over HTTP: whom it serves, and what it says."""

import os
import pwd
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from dsportal.session.tensorboard import words
from tests.instance import USERS, Instance, trust
from tests.network import sockets
from tests.processes import running
from tests.training import curves
from tests.visitor import Visitor, session_of
from tests.waiting import until

USER, OTHER = USERS[1], USERS[2]
HOME = "tensorboard-test"
"""A folder in the home that is as a home for these tests."""


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    """A user with a session, and folders of all kinds."""
    folder = Path(pwd.getpwnam(USER).pw_dir, HOME)
    curves.write(portal, USER, folder / "odd & <b>ö</b> 100%")
    curves.write(portal, USER, folder / "second")
    portal.slurm("/bin/mkdir", "-p", str(folder / "empty"), str(folder / "closed"), user=USER)
    portal.slurm("/bin/chmod", "000", str(folder / "closed"), user=USER)
    for name, end in (("out", "/root/private"), ("gone", "/no/such/place"), ("system", "/usr/lib")):
        portal.slurm("/bin/ln", "-sfn", end, str(folder / name), user=USER)
    with session_of(portal, USER) as visitor:
        yield visitor
    portal.slurm("/bin/chmod", "700", str(folder / "closed"), user=USER)
    portal.slurm("/bin/rm", "-r", str(folder), user=USER)


def asked(user: Visitor, folder: str, headers: dict[str, str] | None = None) -> httpx.Response:
    """Ask for a folder's TensorBoard, as a browser does that follows a link."""
    params = {"folder": f"{HOME}/{folder}"}
    token = {"Authorization": f"token {user.token()}"}
    url = f"{user.instance.url}{user._session_path}/tensorboard/"
    return httpx.get(
        url, params=params, headers={**token, **(headers or {})}, timeout=60, verify=trust()
    )


def seen(
    user: Visitor, address: str, path: str = "", headers: dict[str, str] | None = None
) -> httpx.Response:
    token = {"Authorization": f"token {user.token()}"}
    url = f"{user.instance.url}{address}{path}"
    return httpx.get(url, headers={**token, **(headers or {})}, timeout=60, verify=trust())


def listed(user: Visitor) -> list[str]:
    boards = user.session("GET", "/portal/tensorboard").json()["boards"]
    return [board["folder"] for board in boards]


def test_only_its_own_user_is_let_in(portal: Instance, user: Visitor) -> None:
    address = asked(user, "second").headers["Location"]
    assert "tb-relative-root" in seen(user, address).text
    other = Visitor(portal, OTHER)
    other.log_in()
    token = {"Authorization": f"token {other.token()}"}
    other.close()
    for path in (address, f"{address}data/runs", f"/user/{USER}/tensorboard/?folder=logs"):
        for headers in ({}, token):
            answer = httpx.get(portal.url + path, headers=headers, verify=trust())
            assert answer.status_code in (302, 403), path
    board_id = address.rstrip("/").rpartition("/")[2]
    stop = f"{portal.url}/user/{USER}/portal/tensorboard/{board_id}"
    assert httpx.delete(stop, headers=token, verify=trust()).status_code in (302, 403)
    assert f"{HOME}/second" in listed(user)


def process_of(board_id: str) -> int:
    (process,) = running("tensorboard/server.py", board_id)
    return process.pid


def test_its_process_listens_on_one_socket_that_only_its_user_can_reach(user: Visitor) -> None:
    address = asked(user, "second").headers["Location"]
    assert seen(user, address).status_code == 200
    board_id = address.rstrip("/").rpartition("/")[2]
    process = process_of(board_id)
    (listener,) = sockets.of_processes({process})
    socket = Path(listener.address)
    assert socket.is_socket()
    assert socket.stat().st_mode & 0o777 == 0o600
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert socket.owner() == socket.parent.owner() == USER


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_folder_of_any_name_is_shown_under_its_name(user: Visitor) -> None:
    name = "odd & <b>ö</b> 100%"
    address = asked(user, name).headers["Location"]
    assert asked(user, f"./{name}/").headers["Location"] == address
    environment = seen(user, address, "data/environment").json()
    assert environment["window_title"] == f"~/{HOME}/{name} - TensorBoard"
    assert environment["data_location"].endswith(f"/{HOME}/{name}")
    assert f"{HOME}/{name}" in listed(user)


@pytest.mark.parametrize(
    ("folder", "status", "said"),
    [
        ("away", 404, words.no_folder(f"~/{HOME}/away")),
        ("gone", 404, words.dead_link(f"~/{HOME}/gone", "/no/such/place")),
        ("closed", 404, words.unreadable(f"~/{HOME}/closed")),
        ("out", 404, words.no_way(f"~/{HOME}/out", "/root/private")),
        ("../../..", 404, "below your home"),
        ("empty", 200, words.no_curves(f"~/{HOME}/empty")),
    ],
)
def test_what_cannot_be_shown_is_said_in_words(
    user: Visitor, folder: str, status: int, said: str
) -> None:
    answer = asked(user, folder)
    assert answer.status_code == status
    assert said in answer.text
    assert "Traceback" not in answer.text
    assert f"{HOME}/{folder}" not in listed(user)


def test_a_link_that_leads_out_of_the_home_to_what_may_be_read_is_shown(user: Visitor) -> None:
    answer = asked(user, "system")
    # Too large to be looked through, so TensorBoard itself looks.
    assert answer.status_code == 302
    location = seen(user, answer.headers["Location"], "data/environment").json()["data_location"]
    assert location == "/usr/lib"


def test_whoever_is_near_curves_sees_them_and_anybody_else_those_in_logs(user: Visitor) -> None:
    address = asked(user, "second").headers["Location"]
    near = user.session("GET", f"/tensorboard/?near={HOME}/second")
    assert near.headers["Location"] == address
    # Without a folder of that name there is one from now on.
    assert user.session("GET", "/tensorboard/").status_code in (200, 302)
    assert Path(pwd.getpwnam(USER).pw_dir, "logs").owner() == USER
    expected = user.session("GET", "/tensorboard/?folder=logs")
    for question in ("", "?near=", f"?near={HOME}/empty", f"?near={HOME}/gone"):
        answer = user.session("GET", f"/tensorboard/{question}")
        assert answer.headers.get("Location") == expected.headers.get("Location"), question
        assert answer.text == expected.text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_on_another_page_asks_first(user: Visitor, site: str) -> None:
    before = listed(user)
    answer = asked(user, "empty", {"Sec-Fetch-Site": site})
    assert answer.status_code == 200
    assert words.question(f"~/{HOME}/empty") in answer.text
    assert '<form method="post"' in answer.text
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert listed(user) == before
    # The button: without what the page knows it does nothing.
    path = f"/user/{USER}/tensorboard/?folder={HOME}/empty"
    assert user.http.post(path, follow_redirects=False).status_code == 403
    led = user.session("POST", f"/tensorboard/?folder={HOME}/empty")
    assert (led.status_code, led.headers["Location"]) == (303, path)


def test_a_link_on_another_page_wakes_none(user: Visitor) -> None:
    address = asked(user, "second").headers["Location"]
    board_id = address.rstrip("/").rpartition("/")[2]
    os.kill(process_of(board_id), signal.SIGKILL)
    until(lambda: f"{HOME}/second" not in listed(user), seconds=10, what="it has ended")
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    answer = seen(user, address, headers=elsewhere)
    assert answer.status_code == 302
    assert answer.headers["Location"].endswith(f"/tensorboard/?folder={HOME}/second")
    assert f"{HOME}/second" not in listed(user)
    assert seen(user, address).status_code == 200


def test_no_other_site_may_show_it_in_a_frame(user: Visitor) -> None:
    address = asked(user, "second").headers["Location"]
    policy = seen(user, address).headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert policy.endswith("frame-ancestors 'self'")


def test_a_page_of_another_user_cannot_send_it_anything(user: Visitor) -> None:
    address = asked(user, "second").headers["Location"]
    points = f"{address}data/plugin/timeseries/timeSeries"
    # With the cookies of a browser, as a form on any page would be sent.
    assert user.http.get(address).status_code == 200
    others_page = {"Referer": f"{user.instance.url}/user/{OTHER}/lab"}
    for headers in ({}, others_page):
        assert user.http.post(points, data={"requests": "[]"}, headers=headers).status_code == 403
    own_page = {"Referer": f"{user.instance.url}{address}"}
    assert user.http.post(points, data={"requests": "[]"}, headers=own_page).json() == []


def test_a_stopped_one_does_not_start_again_by_itself(user: Visitor) -> None:
    address = asked(user, "second").headers["Location"]
    board_id = address.rstrip("/").rpartition("/")[2]
    assert user.session("DELETE", f"/portal/tensorboard/{board_id}").status_code == 200
    for path in ("", "data/runs"):
        assert seen(user, address, path).status_code == 404
    assert f"{HOME}/second" not in listed(user)
    assert user.session("DELETE", f"/portal/tensorboard/{board_id}").status_code == 404
    assert asked(user, "second").headers["Location"] == address
