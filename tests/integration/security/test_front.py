"""What somebody without a login can cost: close to nothing."""

import contextlib
import json
import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests import faults
from tests.debian.machines import children
from tests.instance import LOGS, PASSWORD, SETTINGS, USERS, Instance
from tests.network.tls import unchecking
from tests.network.wire import Wire
from tests.visitor import Visitor

MANY = 1150
# Places on this machine that are not the tests' own, so that the limit for one does not count.
ADDRESSES = [f"127.0.1.{number}" for number in range(1, 6)]
HALF_A_BODY = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\na"
HALF = {
    "heads": b"GET /hub/login HTTP/1.1\r\nHost: x\r\nX-A: ",
    "bodies": HALF_A_BODY % b"/hub/login",
    "bodies for a session": HALF_A_BODY % b"/user/x/api",
    "handshakes": b"",
}


def connection(portal: Instance, source: str) -> ssl.SSLSocket:
    address = urlsplit(portal.url)
    plain = socket.create_connection(
        (address.hostname, address.port), timeout=30, source_address=(source, 0)
    )
    return unchecking().wrap_socket(plain)


def waiting(portal: Instance, source: str) -> ssl.SSLSocket:
    """Make a connection that may wait for its next request: longer than for its first one."""
    made = connection(portal, source)
    made.sendall(b"HEAD /hub/static/favicon.ico HTTP/1.1\r\nHost: x\r\n\r\n")
    head = made.recv(10000)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"keep-alive" in head
    return made


@contextlib.contextmanager
def many(portal: Instance, sent: bytes) -> Iterator[list[ssl.SSLSocket]]:
    """Hold connections on which a request, or the beginning of one, was sent."""
    with contextlib.ExitStack() as stack:
        wires = []
        for number in range(MANY):
            one = stack.enter_context(connection(portal, ADDRESSES[number % len(ADDRESSES)]))
            if sent:
                one.sendall(sent)
            wires.append(one)
        yield wires


@pytest.mark.parametrize("kind", HALF)
def test_requests_that_never_end_keep_nobody_out(portal: Instance, kind: str) -> None:
    user = Visitor(portal, USERS[0])
    with many(portal, HALF[kind]), contextlib.closing(user):
        assert user.log_in(PASSWORD).status_code == 200


def test_a_proxy_that_is_busy_for_a_moment_turns_nobody_away(portal: Instance) -> None:
    # The proxy itself answers this one: 400.
    request = b"GET /%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    places = [ADDRESSES[number % len(ADDRESSES)] for number in range(MANY)]
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(waiting(portal, place)) for place in places]
        with faults.frozen("proxy"):
            for wire in wires:
                wire.sendall(request)
        statuses = set()
        for wire in wires:
            wire.settimeout(20)
            statuses.add(int(wire.recv(100).split()[1]))
    assert statuses == {400}


def test_the_proxy_keeps_a_connection_longer_than_the_front_does(portal: Instance) -> None:
    settings = json.loads(SETTINGS.with_name("proxy.json").read_text())
    by_socket = httpx.HTTPTransport(uds=settings["socket"])
    with httpx.Client(transport=by_socket) as client:
        kept = client.get("http://proxy/%ff").headers["Keep-Alive"]
    # nginx: "keepalive_timeout" of an upstream, by default. What the proxy closes first, the front
    # may just have used for a request that it cannot send twice.
    assert int(kept.removeprefix("timeout=")) > 60


def test_one_address_has_a_number_of_connections(portal: Instance) -> None:
    statuses = []
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(waiting(portal, "127.0.2.1")) for _ in range(1005)]
        for wire in wires:
            wire.sendall(HALF["bodies"])
        wire.settimeout(20)
        statuses.append(int(wire.recv(100).split()[1]))
        assert httpx.get(f"{portal.url}/hub/login").status_code == 200
    assert statuses == [429]


def sent(portal: Instance, head: bytes) -> int:
    """Send a large body as far as it is taken; give the answer's status."""
    block = b"a" * 65536
    with connection(portal, "127.0.0.1") as wire:
        wire.sendall(head)
        wire.settimeout(20)
        with contextlib.suppress(OSError):
            for _ in range(LARGE // len(block)):
                wire.sendall(block)
        return int(wire.recv(1000).split()[1])


LARGE = 200 * 2**20
KEPT = 48 * 2**20
"""What no process on the way may grow by: far less than what is sent."""
OPEN_FILES = 16384
"""``portal_open_files`` of the role portal."""


def on_the_way(portal: Instance, owner: Visitor) -> dict[str, int]:
    """Return the number of each process on the way."""
    pids = {name: faults.pid_of(name) for name in ("front", "proxy", "hub")}
    pids["cluster"] = service_of(pids["hub"], "dsportal.cluster")
    pids["session"] = int(owner.run("import os; print(os.getppid())"))
    return pids


def peaks(pids: dict[str, int]) -> dict[str, int]:
    """Return the most bytes that each has held since its peak was last forgotten."""
    found = {}
    for name, pid in pids.items():
        status = Path("/proc", str(pid), "status").read_text()
        found[name] = 1024 * int(re.findall(r"VmHWM:\s+(\d+)", status)[0])
    return found


def service_of(hub: int, module: str) -> int:
    """Return the number of the process of a service that the hub has started."""
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in children(hub)}
    (found,) = (pid for pid, line in lines.items() if module in line)
    return found


@pytest.mark.parametrize("name", ["front", "proxy", "hub"])
def test_a_service_may_have_as_many_files_open_as_its_settings_say(name: str) -> None:
    limits = Path("/proc", str(faults.pid_of(name)), "limits").read_text()
    (soft,) = re.findall(r"Max open files\s+(\d+)", limits)
    assert int(soft) >= OPEN_FILES


@pytest.mark.parametrize(
    "head",
    [
        b"PUT /user/NAME/api/contents/y HTTP/1.1\r\nHost: x\r\n",
        b"POST /hub/login HTTP/1.1\r\nHost: x\r\n",
        b"POST /services/cluster/stop HTTP/1.1\r\nHost: x\r\n",
    ],
)
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_large_body_is_not_kept_for_a_stranger(
    portal: Instance, owner: Visitor, head: bytes, is_chunked: bool
) -> None:
    pids = on_the_way(portal, owner)
    for pid in pids.values():
        # Its peak is forgotten (proc(5)): what is free again by the answer counts, too.
        Path("/proc", str(pid), "clear_refs").write_text("5")
    before = peaks(pids)
    length = b"Transfer-Encoding: chunked" if is_chunked else b"Content-Length: %d" % LARGE
    rest = b"\r\n\r\n" + (b"%x\r\n" % LARGE if is_chunked else b"")
    status = sent(portal, head.replace(b"NAME", owner.name.encode()) + length + rest)
    assert status in (302, 403, 413)
    after = peaks(pids)
    assert {name for name in after if after[name] > before[name] + KEPT} == set()
    assert owner.session("GET", "/api/status").status_code == 200


def test_the_proxys_api_reads_no_body_without_its_token(portal: Instance) -> None:
    port = urlsplit(str(portal.settings["hub"]["proxy_api_url"])).port
    folder = Path(portal.settings["hub"]["state_dir"]) / "internal-tls"
    context = unchecking()
    name = folder / "hub-internal/hub-internal"
    context.load_cert_chain(name.with_suffix(".crt"), name.with_suffix(".key"))
    head = b"POST /api/routes/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{"
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain) as wire,
    ):
        wire.sendall(head)
        assert int(wire.recv(1000).split()[1]) == 403


def test_a_strangers_requests_leave_no_lines(portal: Instance, http: httpx.Client) -> None:
    log = LOGS / "hub.log"
    before = log.stat().st_size
    for number in range(50):
        http.get(f"/hub/login?stranger={number}")
        http.get(f"/hub/no-such-page/stranger/{number}")
        http.get(f"/hub/api/users/stranger{number}")
    assert "stranger" not in log.read_bytes()[before:].decode(errors="replace")


def test_a_wire_is_closed_where_no_request_comes(wire: Wire) -> None:
    assert wire.statuses() in ([], [408])


@pytest.mark.parametrize(
    ("path", "is_compressed"),
    [
        ("/static/favicons/favicon.ico", False),
        ("/lab/api/settings", True),
        ("/lab/api/settings?ids_only=true", True),
        ("/lab", False),
        ("/api/contents", False),
        ("/lab/api/workspaces", False),
    ],
)
def test_nothing_is_compressed_whose_size_could_tell_of_a_secret(
    owner: Visitor, path: str, is_compressed: bool
) -> None:
    """Programs, and what nobody's request adds to: the others' pages, answers and files are not."""
    answer = owner.session("GET", path)
    answer.raise_for_status()
    encoding = answer.headers.get("Content-Encoding")
    assert encoding == ("gzip" if is_compressed else None)


def test_jupyterlabs_programs_are_compressed(owner: Visitor) -> None:
    page = owner.session("GET", "/lab").text
    (program,) = re.findall(r'src="/user/[^/]+(/static/lab/main\.[0-9a-f]+\.js[^"]*)"', page)
    assert owner.session("GET", program).headers["Content-Encoding"] == "gzip"
