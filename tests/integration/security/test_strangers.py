"""What a stranger can make a session, the hub and the cluster's service do: next to nothing."""

import json
import pwd
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from dsportal.hub.patches.connection_limits import MOST_IDLE
from dsportal.request_limits import SMALL_BODY
from tests.instance import Instance
from tests.network.wire import Wire
from tests.visitor import Visitor

HUGE = 400 * 2**20


@pytest.mark.parametrize("path", ["/user/NAME/api/contents/x", "/services/cluster/stop"])
def test_a_long_body_is_refused_before_it_comes(owner: Visitor, wire: Wire, path: str) -> None:
    host = urlsplit(owner.instance.url).netloc
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {HUGE}\r\n\r\n"
    wire.send(head.replace("NAME", owner.name).encode() + b"a" * 1000)
    assert wire.first_status() in (403, 413)


@pytest.mark.parametrize("token", ["", "token of-nobody"])
def test_a_session_writes_nothing_of_what_strangers_try(
    http: httpx.Client, owner: Visitor, token: str
) -> None:
    (job_id,) = owner.instance.jobs(user=owner.name)
    home = Path(pwd.getpwnam(owner.name).pw_dir)
    log = home / f".local/state/data-scientist-portal/session-{job_id}.log"
    before = log.stat().st_size
    headers = {"Authorization": token} if token else {}
    for path in ("/api/contents", "/lab", "/no/such/page", "/tools/x/", "/portal/jobs"):
        address = f"/user/{owner.name}{path}?{'a' * 5000}"
        for method in ("GET", "POST", "DELETE"):
            status = http.request(method, address, headers=headers).status_code
            assert status in (302, 403, 404, 405)
    assert log.stat().st_size == before


def test_who_is_logged_in_may_send_files_and_little_else(owner: Visitor) -> None:
    file = {"type": "file", "format": "text", "content": "x" * (3 * SMALL_BODY)}
    sent = owner.session("PUT", "/api/contents/long.txt", content=json.dumps(file))
    assert sent.status_code == 201
    assert owner.session("DELETE", "/api/contents/long.txt").status_code == 204
    refused = owner.session("POST", "/portal/idle", content=b"x" * (SMALL_BODY + 1))
    assert refused.status_code == 413


@pytest.fixture
def many_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * MOST_IDLE, max(2 * MOST_IDLE, before[1])))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_files")
def test_the_hubs_own_port_cannot_be_filled(http: httpx.Client, portal: Instance) -> None:
    hub = urlsplit(portal.settings["hub"]["api_url"])
    address = str(hub.hostname), int(hub.port or 0)
    with ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection(address, timeout=20))
            for _ in range(MOST_IDLE + 20)
        ]
        assert idle[0].recv(1) == b""
        assert http.get("/hub/api/").status_code == 200
        idle[-1].settimeout(0.1)
        with pytest.raises(TimeoutError):
            idle[-1].recv(1)
