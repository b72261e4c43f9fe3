"""Who gets in, and as what."""

from collections.abc import Callable

import httpx
import pytest

from tests.instance import ADMIN, USERS, Instance
from tests.visitor import Visitor

Visit = Callable[[str], Visitor]


def test_the_login_page_is_on_the_public_port(portal: Instance) -> None:
    page = httpx.get(f"{portal.url}/", follow_redirects=True)
    assert page.status_code == 200
    assert 'name="password"' in page.text


@pytest.mark.parametrize(
    ("name", "password"),
    [
        (USERS[0], "wrong"),
        (USERS[0], ""),
        ("nobody-here", "portal"),
        ("*", "portal"),
        (f"{USERS[0]})(uid=*", "portal"),
        ("root", ""),
        ("", ""),
    ],
)
def test_wrong_credentials_are_refused(portal: Instance, name: str, password: str) -> None:
    visitor = Visitor(portal, name)
    page = visitor.log_in(password)
    visitor.close()
    assert page.status_code in (401, 403)
    assert "Traceback" not in page.text


def test_an_admin_starts_and_stops_a_users_server(portal: Instance, visit: Visit) -> None:
    admin, user = visit(ADMIN), visit(USERS[0])
    listed = admin.api("GET", "/users")
    assert {USERS[0], ADMIN} <= {entry["name"] for entry in listed.json()}
    assert 'id="react-admin-hook"' in admin.http.get("/hub/admin").text
    started = admin.api("POST", f"/users/{USERS[0]}/server", json={"gpus": 1})
    assert started.status_code in (201, 202)
    user.wait_until_ready()
    (job_id,) = portal.jobs(user=USERS[0])
    assert portal.job(job_id)["UserId"].startswith(f"{USERS[0]}(")
    assert admin.api("DELETE", f"/users/{USERS[0]}/server").status_code in (202, 204)


def test_a_user_is_no_admin(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    assert user.api("GET", "/users").status_code == 403
    assert user.http.get("/hub/admin").status_code == 403
    assert user.api("POST", f"/users/{USERS[1]}/server", json={"gpus": 1}).status_code in (403, 404)
    assert portal.jobs(user=USERS[1]) == []


def test_a_user_cannot_open_another_users_session(visit: Visit) -> None:
    owner, other = visit(USERS[0]), visit(USERS[1])
    owner.start_and_wait(gpus=0)
    token = other.token()
    url = f"{owner.instance.url}/user/{USERS[0]}/api/contents"
    answer = httpx.get(url, headers={"Authorization": f"token {token}"})
    assert answer.status_code in (403, 404)
    assert httpx.get(url).status_code in (302, 403)
