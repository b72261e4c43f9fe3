"""Admins see and stop sessions; to open one is a right of its own, which is written down."""

import re
from collections.abc import Iterator

import httpx
import pytest

from tests.instance import ADMIN, ENTERER, Instance
from tests.visitor import Visitor


@pytest.fixture(scope="module")
def admin(portal: Instance) -> Iterator[Visitor]:
    admin = Visitor(portal, ADMIN)
    admin.log_in()
    yield admin
    admin.close()


@pytest.fixture(scope="module")
def enterer(portal: Instance) -> Iterator[Visitor]:
    enterer = Visitor(portal, ENTERER)
    enterer.log_in()
    yield enterer
    enterer.close()


def test_an_admin_sees_the_session(admin: Visitor, owner: Visitor) -> None:
    listed = {user["name"]: user for user in admin.api("GET", "/users").json()}
    assert listed[owner.name]["servers"][""]["ready"] is True
    assert admin.http.get("/hub/admin").status_code == 200


def test_an_admin_cannot_open_it(admin: Visitor, owner: Visitor) -> None:
    page = admin.http.get(f"/user/{owner.name}/lab")
    assert page.status_code == 403
    headers = {"Authorization": f"token {admin.token()}"}
    files = f"{admin.instance.url}/user/{owner.name}/api/contents"
    assert httpx.get(files, headers=headers).status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/users/OWNER/tokens", {"note": "mine"}),
        ("GET", "/users/OWNER/tokens", None),
        ("PATCH", "/users/ADMIN", {"name": "someone"}),
        ("PATCH", "/users/OWNER", {"admin": True}),
        ("POST", "/users/another", {"admin": True}),
        ("POST", "/users", {"usernames": ["another"], "admin": True}),
        ("POST", "/shares/OWNER/", {"user": "ADMIN"}),
        ("POST", "/share-codes/OWNER/", {}),
        ("POST", "/groups/ENTERERS/users", {"users": ["ADMIN"]}),
        ("POST", "/groups/another", None),
        ("POST", "/services/mine", {"api_token": "0" * 32}),
        ("PATCH", "/proxy", {"api_url": "http://127.0.0.1:1"}),
        ("GET", "/proxy", None),
    ],
)
def test_an_admin_has_no_way_round(
    admin: Visitor, owner: Visitor, method: str, path: str, body: object
) -> None:
    group = owner.instance.settings["access"]["server_access_groups"][0]
    names = {"OWNER": owner.name, "ADMIN": ADMIN, "ENTERERS": group}
    path = re.sub("OWNER|ADMIN|ENTERERS", lambda found: names[found[0]], path)
    assert admin.api(method, path, json=body).status_code in (400, 403, 404)


def test_an_admin_adds_and_removes_users(admin: Visitor) -> None:
    assert admin.api("POST", "/users/someone").status_code == 201
    assert admin.api("DELETE", "/users/someone").status_code == 204


def test_a_user_with_a_session_is_not_deleted(admin: Visitor, owner: Visitor) -> None:
    answer = admin.api("DELETE", f"/users/{owner.name}")
    assert answer.status_code == 409
    assert answer.json()["message"] == f"Stop the sessions of {owner.name} first."
    assert owner.server() is not None


def test_a_token_of_theirs_is_seen_by_the_user_too(enterer: Visitor, owner: Visitor) -> None:
    headers = {"Authorization": f"token {enterer.token()}"}
    files = f"{enterer.instance.url}/user/{owner.name}/api/contents"
    assert httpx.get(files, headers=headers).status_code == 200
    seen = owner.session("GET", "/portal/visits").json()["visits"]
    assert ENTERER in [visit["name"] for visit in seen]


def test_who_may_open_sessions_may_not_stop_them(enterer: Visitor, owner: Visitor) -> None:
    assert enterer.api("DELETE", f"/users/{owner.name}/server").status_code in (403, 404)
    assert enterer.api("GET", "/users").status_code == 403
    assert owner.server() is not None


def test_a_stranger_cannot_post_the_answer_to_the_page_that_asks(
    stranger: Visitor, owner: Visitor
) -> None:
    query = {
        "client_id": f"jupyterhub-user-{owner.name}",
        "redirect_uri": f"/user/{owner.name}/oauth_callback",
        "response_type": "code",
    }
    answer = stranger.api("POST", "/oauth2/authorize", params=query)
    assert answer.status_code == 403
