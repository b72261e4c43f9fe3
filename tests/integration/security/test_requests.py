"""Requests that are malformed, oversized, forged or slow: refused, and the hub lives on."""

import contextlib
import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from portal.strict import LARGEST_BODY
from tests.instance import Instance
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
]
PATHS = (
    "%ff%fe",
    "%zz",
    "%00",
    "%2e%2e/%2e%2e/etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%0d%0aX-A:b",
)


class Wire:
    """A connection to the proxy, for what no HTTP client would send."""

    def __init__(self, portal: Instance) -> None:
        self._portal = portal
        address = urlsplit(portal.url)
        self._socket = socket.create_connection((address.hostname, address.port), timeout=20)

    def send(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def statuses(self) -> list[int]:
        """Return the status of each answer until the other side closes; none: it just closed."""
        text = b""
        with contextlib.suppress(ConnectionResetError):
            while data := self._socket.recv(65536):
                text += data
        parts = text.split(b"HTTP/1.1 ")[1:]
        return [int(part[:3]) for part in parts]

    def first_status(self) -> int:
        """Return the status of the first answer; the connection may stay."""
        text = b""
        while b"\r\n" not in text:
            text += self._socket.recv(1)
        return int(text.split()[1])

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def wire(portal: Instance) -> Iterator[Wire]:
    wire = Wire(portal)
    yield wire
    wire.close()


def hub_is_well(portal: Instance) -> bool:
    return httpx.get(f"{portal.url}/hub/api/", timeout=10).status_code == 200


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
    wire.send(b"Connection: Upgrade\r\n\r\n")
    assert all(status < 500 or status == 503 for status in wire.statuses())


def test_what_is_too_large_is_refused_before_it_is_read(portal: Instance, wire: Wire) -> None:
    head = "POST /hub/login HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n"
    wire.send(head.format(LARGEST_BODY + 1).encode() + b"a" * 1000)
    assert wire.first_status() == 400
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
    assert statuses[:1] in ([400], [403])
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


def test_a_body_may_be_as_large_as_the_hub_needs(http: httpx.Client, stranger: Visitor) -> None:
    headers = {"Authorization": f"token {stranger.token()}"}
    content = json.dumps({"note": "x" * (LARGEST_BODY // 2)}).encode()
    answer = http.post(f"/hub/api/users/{stranger.name}/tokens", headers=headers, content=content)
    assert answer.status_code < 500
