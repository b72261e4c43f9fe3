"""What a session's own token opens: what the session needs, and nothing else."""

from typing import Any

import httpx
import pytest

from tests.instance import Instance, trust
from tests.visitor import Visitor

SESSION_TOKEN = "import os; print(os.environ['JUPYTERHUB_API_TOKEN'])"
NOW = "2026-01-01T00:00:00Z"


def asked(url: str, token: str, method: str = "GET", **request: Any) -> int:
    headers = {"Authorization": f"token {token}"}
    return httpx.request(method, url, headers=headers, timeout=30, **request).status_code


def test_hubs_api_tokens_of_a_session_are_scoped_to_what_a_session_needs(
    portal: Instance, stranger: Visitor, session_token: str
) -> None:
    headers = {"Authorization": f"token {session_token}"}
    scopes = set(
        httpx.get(f"{portal.url}/hub/api/user", headers=headers, verify=trust()).json()["scopes"]
    )
    name = stranger.name
    # Whose it is, may be known to whoever has a token; to tell of activity includes to read it.
    known = {f"read:users:{what}!user={name}" for what in ("name", "groups", "activity")}
    needed = {f"users:activity!user={name}", "access:services!service=cluster"}
    assert scopes - known == needed


def test_each_of_its_scopes_is_needed(
    portal: Instance, stranger: Visitor, session_token: str
) -> None:
    activity = {"servers": {"": {"last_activity": NOW}}, "last_activity": NOW}
    url = f"{portal.url}/hub/api/users/{stranger.name}/activity"
    assert asked(url, session_token, "POST", json=activity) == 200
    assert asked(f"{portal.url}/services/cluster/api/v1/jobs", session_token) == 200
    assert stranger.session("GET", "/portal/jobs").status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/hub/api/users/NAME/server"),
        ("DELETE", "/hub/api/users/NAME/server"),
        ("POST", "/hub/api/users/NAME/tokens"),
        ("GET", "/hub/api/users/NAME/tokens"),
        ("GET", "/hub/api/users"),
        ("GET", "/hub/metrics"),
        ("GET", "/user/NAME/api/contents"),
        ("POST", "/user/NAME/api/kernels"),
        ("GET", "/services/cluster/api/v1/sessions"),
    ],
)
def test_what_a_session_does_not_need_is_refused(
    portal: Instance, stranger: Visitor, session_token: str, method: str, path: str
) -> None:
    url = portal.url + path.replace("NAME", stranger.name)
    assert asked(url, session_token, method) in (403, 404)


def test_a_browsers_token_at_a_session_is_for_that_session(owner: Visitor) -> None:
    owner.http.get(f"/user/{owner.name}/lab")
    tokens = owner.api("GET", f"/users/{owner.name}/tokens").json()["api_tokens"]
    of_the_session = [
        one for one in tokens if one.get("session_id") and "cluster" not in one["oauth_client"]
    ]
    assert of_the_session
    for one in of_the_session:
        assert f"access:servers!server={owner.name}/" in one["scopes"]
        assert not [scope for scope in one["scopes"] if scope.startswith(("servers", "tokens"))]


def test_the_token_ends_with_the_session(portal: Instance, stranger: Visitor) -> None:
    named = stranger.at("short")
    named.start_and_wait(gpus=0)
    token = named.run_in(named.open_kernel(), SESSION_TOKEN).strip()
    assert asked(f"{portal.url}/hub/api/user", token) == 200
    named.stop()
    assert asked(f"{portal.url}/hub/api/user", token) == 403


def test_a_session_keeps_its_token_while_it_needs_it(
    portal: Instance, stranger: Visitor, session_token: str
) -> None:
    told = stranger.api("GET", f"/users/{stranger.name}/tokens").json()["api_tokens"]
    (own,) = [one["id"] for one in told if one["note"] == f"Server at /user/{stranger.name}/"]
    path = f"/users/{stranger.name}/tokens/{own}"
    refused = stranger.api("DELETE", path)
    assert refused.status_code == 409
    assert "session" in refused.json()["message"]
    assert asked(f"{portal.url}/hub/api/user", session_token) == 200
    # Nor with a token that may do all that its user may.
    assert asked(f"{portal.url}/hub/api{path}", stranger.token(), "DELETE") == 409
    page = stranger.http.get("/hub/token").text
    assert f'data-token-id="{own}"' in page
    row = page.split(f'data-token-id="{own}"')[1].split("</section>")[0]
    assert "revoke-token-btn" not in row
