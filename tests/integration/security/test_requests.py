"""Requests that are malformed, oversized, forged or slow: refused, and the hub lives on."""

import json
import re
from collections.abc import Iterator
from itertools import product

import httpx
import pytest

from dsportal.hub.patches.api_hardening import LARGEST_BODY
from tests.instance import ADMIN, Instance, trust
from tests.network.wire import Wire
from tests.visitor import Visitor

DEEP = b"[" * 100_000 + b"]" * 100_000
BODIES = {
    "cut": b"{",
    "deep list": DEEP,
    "deep object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "no UTF-8": b'{"gpus":"\xff\xfe"}',
    "NUL": b'{"gpus":"\\u0000"}',
    "half a character": b'{"gpus":"\\ud800"}',
    "list": b"[1]",
    "text": b'"x"',
    "number": b"1e999",
    "no number": b'{"gpus":NaN}',
    "long number": b'{"gpus":' + b"9" * 5000 + b"}",
    "form": b"a=1",
}
HUB = [
    ("POST", "/hub/api/users/NAME/server"),
    ("POST", "/hub/api/users/NAME/servers/x"),
    ("PATCH", "/hub/api/users/NAME/server"),
    ("DELETE", "/hub/api/users/NAME/servers/x"),
    ("POST", "/hub/api/users/NAME/tokens"),
    ("POST", "/hub/api/users/NAME/activity"),
    ("POST", "/hub/api/gpu-session/unused/NAME/x"),
    ("POST", "/hub/api/oauth2/token"),
    ("DELETE", "/services/cluster/api/v1/sessions/x/y"),
]
OF_A_SESSION = [
    ("POST", "/hub/api/gpu-session/port"),
    ("POST", "/hub/api/gpu-session/extend"),
    ("POST", "/hub/api/gpu-session/activity"),
]
SESSION = [
    ("POST", "/user/NAME/portal/clock/extend"),
    ("POST", "/user/NAME/portal/templates/copy"),
    ("POST", "/user/NAME/portal/jobs/cancel"),
    ("POST", "/user/NAME/api/terminals"),
    ("PUT", "/user/NAME/api/contents/no/such"),
]
WRONG_VALUES: list[object] = [
    None,
    True,
    -1,
    1.5,
    10**400,
    [],
    [1],
    {},
    {"a": {}},
    "\ud800",
    "\0",
    "../..",
    "a" * 5000,
]
KEYS = [
    ("POST", "/portal/clock/extend", {"minutes": 1}),
    ("POST", "/portal/templates/copy", {"path": "templates/x", "folder": "y"}),
    ("POST", "/portal/jobs/cancel", {"job": "1"}),
    ("POST", "/api/terminals", {"cwd": "no/such", "name": "one"}),
    ("POST", "/api/contents/no/such", {"type": "file", "ext": ".txt", "copy_from": "no/such"}),
    ("PUT", "/api/contents/kinds.txt", {"type": "file", "format": "text", "content": "x"}),
    ("PATCH", "/api/contents/no/such", {"path": "x"}),
]
WRONG: dict[str, object] = {
    "null": None,
    "true": True,
    "negative": -1,
    "fraction": 1.5,
    "huge": 10**30,
    "text": "x",
    "NUL": "\0",
    "half a character": "\ud800",
    "empty list": [],
    "list of numbers": [1],
    "list of nothing": [None],
    "nested list": [["x"]],
    "object": {"x": 1},
    "nested object": {"": {"last_activity": [1]}},
}
# What takes JSON, and under which names; ``shutdown`` is for whom the stranger is not.
TAKEN = {
    ("POST", "/users"): ("usernames", "admin"),
    ("POST", "/users/NAME"): ("admin", "name", "groups"),
    ("PATCH", "/users/NAME"): ("name", "admin", "auth_state"),
    ("POST", "/users/NAME/tokens"): ("note", "expires_in", "roles", "scopes", "auth"),
    ("POST", "/users/NAME/activity"): ("last_activity", "servers"),
    ("POST", "/users/NAME/server"): ("gpus", "hours", "partition", "display_name", "user_options"),
    ("PUT", "/users/NAME/servers/x"): ("display_name", "user_options", "gpus"),
    ("POST", "/users/NAME/servers/x"): ("display_name", "user_options", "gpus"),
    ("DELETE", "/users/NAME/servers/x"): ("remove",),
    ("POST", "/groups"): ("groups", "users"),
    ("POST", "/groups/x"): ("name", "users", "roles"),
    ("POST", "/groups/x/users"): ("users",),
    ("DELETE", "/groups/x/users"): ("users",),
    ("PUT", "/groups/x/properties"): ("x",),
    ("POST", "/services/x"): ("name", "url", "command"),
    ("POST", "/shares/NAME/x"): ("user", "group", "scopes"),
    ("PATCH", "/shares/NAME/x"): ("user", "group", "scopes"),
    ("POST", "/share-codes/NAME/x"): ("expires_in", "scopes"),
    ("POST", "/shutdown"): ("proxy", "servers"),
    ("POST", "/gpu-session/unused/NAME/x"): ("seconds",),
}
TAKEN_FROM_A_SESSION = {
    ("POST", "/gpu-session/port"): ("port",),
    ("POST", "/gpu-session/extend"): ("minutes",),
    ("POST", "/gpu-session/activity"): ("idle_seconds",),
}
PATHS = (
    "%ff%fe",
    "%zz",
    "%00",
    "%2e%2e/%2e%2e/etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%0d%0aX-A:b",
)


@pytest.fixture(scope="module")
def admin(portal: Instance) -> Iterator[Visitor]:
    """An administrator."""
    admin = Visitor(portal, ADMIN)
    admin.log_in().raise_for_status()
    yield admin
    # What is not wrong about a body may have started a session.
    admin.leave()
    admin.close()


def hub_is_well(portal: Instance) -> bool:
    return httpx.get(f"{portal.url}/hub/api/", timeout=10, verify=trust()).status_code == 200


@pytest.mark.parametrize("kind", BODIES)
def test_a_malformed_body_is_the_senders_fault(
    http: httpx.Client, stranger: Visitor, session_token: str, kind: str
) -> None:
    jobs = stranger.instance.jobs(user=stranger.name)
    own = stranger.token()
    todo = [(one, own) for one in HUB + SESSION] + [(one, session_token) for one in OF_A_SESSION]
    for (method, path), token in todo:
        headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
        path = path.replace("NAME", stranger.name)
        answer = http.request(method, path, headers=headers, content=BODIES[kind])
        assert answer.status_code < 500, (method, path, answer.text)
    assert stranger.instance.jobs(user=stranger.name) == jobs
    assert hub_is_well(stranger.instance)


@pytest.mark.parametrize("who", ["stranger", "admin", "session"])
def test_a_member_of_a_wrong_type_is_the_senders_fault(
    http: httpx.Client, stranger: Visitor, session_token: str, admin: Visitor, who: str
) -> None:
    jobs = stranger.instance.jobs(user=stranger.name)
    name = admin.name if who == "admin" else stranger.name
    token = {"stranger": stranger.token(), "admin": admin.token(), "session": session_token}[who]
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    failed = []
    for (method, path), names in (TAKEN_FROM_A_SESSION if who == "session" else TAKEN).items():
        if (who, path) == ("admin", "/shutdown"):
            continue  # a refusal that is missed would end the hub for the other tests
        for member, kind in product(names, WRONG):
            body = json.dumps({member: WRONG[kind]})
            address = f"/hub/api{path.replace('NAME', name)}"
            answer = http.request(method, address, headers=headers, content=body)
            if answer.status_code >= 500:
                failed.append((method, path, member, kind, answer.text))
    assert not failed
    assert stranger.instance.jobs(user=stranger.name) == jobs


@pytest.mark.parametrize(("method", "path", "body"), KEYS)
def test_a_value_of_the_wrong_kind_is_the_senders_fault(
    http: httpx.Client, stranger: Visitor, method: str, path: str, body: dict[str, object]
) -> None:
    headers = {"Authorization": f"token {stranger.token()}", "Content-Type": "application/json"}
    for key in body:
        for value in WRONG_VALUES:
            answer = http.request(
                method,
                f"/user/{stranger.name}{path}",
                headers=headers,
                content=json.dumps(body | {key: value}),
            )
            assert answer.status_code < 500, (key, value, answer.text)
            if path == "/api/terminals" and answer.status_code == 200:
                stranger.session("DELETE", f"{path}/{answer.json()['name']}")
    stranger.session("DELETE", "/api/contents/kinds.txt")


@pytest.mark.parametrize("path", PATHS)
def test_a_malformed_address_is_the_senders_fault(
    http: httpx.Client, path: str, wire: Wire
) -> None:
    for base in ("/hub/api", "/hub/static", "/hub/login", "/services/cluster", "/user/x/files"):
        answer = http.get(f"{base}/{path}")
        assert answer.status_code < 500, base
        assert "root:" not in answer.text
        assert "X-A" not in answer.headers
    wire.send(f"GET /user/x/{path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n".encode())
    # With "close" it ends behind the answer, so that a second one would be seen.
    wire.send(b"Connection: Upgrade, close\r\n\r\n")
    (status,) = wire.statuses()
    assert status < 500 or status == 503


def test_what_is_too_large_is_refused_before_it_is_read(portal: Instance, wire: Wire) -> None:
    head = "POST /hub/login HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n"
    wire.send(head.format(LARGEST_BODY + 1).encode() + b"a" * 1000)
    assert wire.first_status() == 413
    assert hub_is_well(portal)


def test_chunks_do_not_get_round_the_limit(portal: Instance, wire: Wire) -> None:
    wire.send(b"POST /hub/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
    for _ in range(2 * LARGEST_BODY // 0x10000):
        wire.send(chunk)
    wire.send(b"0\r\n\r\n")
    assert all(400 <= status < 500 or status == 503 for status in wire.statuses())
    assert hub_is_well(portal)


def test_a_huge_header_is_refused(portal: Instance, wire: Wire) -> None:
    wire.send(b"GET /hub/login HTTP/1.1\r\nHost: x\r\nX-Big: " + b"a" * 200_000 + b"\r\n\r\n")
    assert all(400 <= status < 500 for status in wire.statuses())
    assert hub_is_well(portal)


# RFC 9112, section 6.3 and 11.2: where two servers could disagree on where a request ends.
SMUGGLED = b"GET /hub/admin HTTP/1.1\r\nHost: x\r\n\r\n"
AMBIGUOUS = {
    "length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 50\r\n\r\nabcde",
    "a signed length": b"Content-Length: +5\r\n\r\nabcde",
    "a hidden coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding with a tab": b"Transfer-Encoding:\tchunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"Content-Length : 5\r\n\r\nabcde",
    "a folded line": b"X-A: b\r\n Content-Length: 5\r\n\r\nabcde",
    "a bare line feed": b"X-A: b\nContent-Length: 5\r\n\r\nabcde",
    "a bad chunk": b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("kind", AMBIGUOUS)
def test_no_request_is_smuggled_through_the_proxy(portal: Instance, wire: Wire, kind: str) -> None:
    head = b"POST /hub/login HTTP/1.1\r\nHost: x\r\n"
    wire.send(
        head + AMBIGUOUS[kind] + SMUGGLED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    )
    statuses = wire.statuses()
    # The first is refused, and what follows is never taken for a request of its own.
    assert statuses[:1] in ([400], [403], [501])
    assert len(statuses) == 1 or statuses == [403, 302]
    assert hub_is_well(portal)


def test_many_slow_connections_keep_nobody_out(portal: Instance) -> None:
    slow = [Wire(portal) for _ in range(300)]
    for one in slow:
        one.send(b"POST /hub/login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\na")
    assert hub_is_well(portal)
    for one in slow:
        one.close()
    assert hub_is_well(portal)


@pytest.mark.parametrize("where", ["/hub/home", "/hub/login", "/hub/api/user", "/user/NAME/lab"])
def test_every_answer_says_what_a_browser_may_do_with_it(owner: Visitor, where: str) -> None:
    answer = owner.http.get(where.replace("NAME", owner.name), follow_redirects=True)
    policy = answer.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy or "frame-ancestors 'self'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert answer.headers["Server"] == "portal"


@pytest.mark.parametrize(
    "where",
    [
        "/",
        "/hub/login",
        "/hub/no-such-page",
        "/hub/api/",
        "/hub/static/css/style.min.css",
        "/hub/static/no-such-file",
        "/hub/logo",
        "/services/cluster/",
        "/services/cluster/api/v1/cluster",
        "/services/cluster/cluster.js",
        "/services/cluster/no-such-page",
        "/user/no-such-user/",
    ],
)
def test_no_answer_names_a_version(http: httpx.Client, where: str) -> None:
    for method in ("GET", "POST", "PROPFIND"):
        answer = http.request(method, where)
        assert answer.headers.get("Server", "portal") == "portal", method


@pytest.mark.parametrize("kind", AMBIGUOUS)
def test_no_refusal_of_the_proxys_names_a_version(wire: Wire, kind: str) -> None:
    head = b"POST /hub/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    wire.send(head + AMBIGUOUS[kind])
    assert not re.search(rb"\r\nserver: [^\r]*[0-9/]", wire.text().lower())


@pytest.mark.parametrize("where", ["/", "/hub/login", "/services/cluster/"])
def test_a_head_is_answered_as_a_get(http: httpx.Client, owner: Visitor, where: str) -> None:
    first = http.head(where), http.get(where)
    assert first[0].status_code == first[1].status_code
    assert (
        httpx.head(
            f"{owner.instance.url}{where}", follow_redirects=True, verify=trust()
        ).status_code
        == 200
    )
    logged_in = owner.http.head("/hub/home")
    assert logged_in.status_code == 200
    assert not logged_in.content


def test_a_body_may_be_as_large_as_the_hub_needs(http: httpx.Client, stranger: Visitor) -> None:
    headers = {"Authorization": f"token {stranger.token()}"}
    content = json.dumps({"note": "x" * (LARGEST_BODY // 2)}).encode()
    answer = http.post(f"/hub/api/users/{stranger.name}/tokens", headers=headers, content=content)
    assert answer.status_code < 500


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/constructor", 404),
        ("/__proto__/x", 404),
        ("/hub/portal/gate?next=//[", 400),
        (f"/hub/error/{'5' * 5000}", 404),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_address_that_leads_nowhere_is_answered_and_is_no_fault_of_the_hubs(
    portal: Instance, path: str, status: int
) -> None:
    assert httpx.get(f"{portal.url}{path}", verify=trust(), timeout=10).status_code == status


def test_a_login_without_a_name_is_a_refused_one(portal: Instance) -> None:
    visitor = Visitor(portal, ADMIN)
    answer = visitor.http.post("/hub/login", data={"_xsrf": visitor.xsrf(), "password": "x"})
    visitor.close()
    assert answer.status_code == 403
