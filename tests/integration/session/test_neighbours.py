"""Two users with sessions on one node: what the one can reach of the other's session."""

import json
import pwd
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.instance import USERS, Instance
from tests.network import sockets
from tests.network.sockets import Listener
from tests.processes import running
from tests.training import curves
from tests.visitor import Visitor
from tests.waiting import until

Visit = Callable[[str], Visitor]
HOST, NEIGHBOUR = USERS[:2]
FOLDER = "neighbours-test"
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what is looked for

CHILDREN = """
import multiprocessing, subprocess, sys
from concurrent.futures import ProcessPoolExecutor
subprocess.run(["/bin/echo", "program"])
subprocess.run([sys.executable, "-c", "print('spawned')"])
fork = multiprocessing.get_context("fork")
def say():
    print("forked", flush=True)
child = fork.Process(target=say)
child.start(); child.join()
with ProcessPoolExecutor(1, mp_context=fork) as pool:
    pool.submit(print, "pooled", flush=True).result()
"""

# Runs in the neighbour's session, with nothing but Python.
ATTACK = """
import http.client, json, os, socket, ssl

def words(error):
    return type(error).__name__

def connect(one):
    if one["kind"] == "unix":
        path = one["address"]
        end = socket.socket(socket.AF_UNIX)
        end.settimeout(5)
        end.connect("\\0" + path[1:] if path.startswith("@") else path)
        return end
    host = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(one["address"], one["address"])
    return socket.create_connection((host, one["port"]), timeout=5)

def first_words(one):
    try:
        with connect(one) as end:
            end.settimeout(1)
            try:
                return "said " + repr(end.recv(10))
            except TimeoutError:
                return "said nothing"
    except OSError as error:
        return words(error)

def own_tls():
    # What the session has for the hub; whom it speaks to does not matter to it here.
    files = (os.environ["JUPYTERHUB_SSL_" + name] for name in ("CERTFILE", "KEYFILE"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(*files)
    return context

def asked(one, path, headers):
    try:
        with own_tls().wrap_socket(connect(one)) as end:
            to = http.client.HTTPConnection("localhost")
            to.sock = end
            to.request("GET", path, headers=headers)
            return to.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return words(error)

def opened(path):
    try:
        with open(path, "rb") as file:
            return "read " + repr(file.read(10))
    except OSError as error:
        return words(error)

def listed(path):
    try:
        return os.listdir(path)
    except OSError as error:
        return words(error)
"""


@dataclass(frozen=True)
class Session:
    """The session that is attacked."""

    visitor: Visitor
    job: str
    kernel_id: str
    address: str
    """Of its TensorBoard, as a path."""
    server_pid: int
    listeners: tuple[Listener, ...]

    @property
    def server(self) -> Listener:
        """What the hub's proxy connects to."""
        (server,) = [one for one in self.listeners if one.address in EVERYWHERE]
        return server


@pytest.fixture(scope="module")
def started_at() -> float:
    """When the sessions began."""
    return time.time()


@pytest.fixture(scope="module")
def visitors(portal: Instance, started_at: float) -> Iterator[tuple[Visitor, Visitor]]:
    """Two users with sessions on one node, from that moment on."""
    both = Visitor(portal, HOST), Visitor(portal, NEIGHBOUR)
    try:
        for visitor in both:
            visitor.log_in().raise_for_status()
        jobs = [portal.job(visitor.start_and_wait(gpus=0)) for visitor in both]
        assert jobs[0]["NodeList"] == jobs[1]["NodeList"]
        yield both
    finally:
        for visitor in both:
            visitor.leave()
            visitor.close()


@pytest.fixture(scope="module")
def session(portal: Instance, visitors: tuple[Visitor, Visitor]) -> Iterator[Session]:
    """A session in use: a kernel with its debugger, a terminal and a TensorBoard run."""
    visitor, _ = visitors
    folder = Path(pwd.getpwnam(HOST).pw_dir, FOLDER)
    curves.write(portal, HOST, folder)
    kernel_id = visitor.open_kernel()
    server_pid = int(visitor.run_in(kernel_id, "import os; print(os.getppid())"))
    visitor.switch_debugger_on(kernel_id)
    visitor.session("POST", "/api/terminals").raise_for_status()
    opened = visitor.session("GET", f"/tensorboard/?folder={FOLDER}")
    assert opened.status_code == 302
    board = opened.headers["Location"]
    # As soon as its first page is there it listens on all that it will listen on.
    page = visitor.session("GET", board.removeprefix(visitor._session_path))
    assert "tb-relative-root" in page.text
    (job,) = portal.jobs(user=HOST)
    yield Session(visitor, job, kernel_id, board, server_pid, tuple(listeners_of(HOST)))
    portal.slurm("/bin/rm", "-r", str(folder), user=HOST)


@pytest.fixture(scope="module")
def attack(visitors: tuple[Visitor, Visitor]) -> Callable[[str], Any]:
    """Evaluate an expression in the neighbour's session, beside what ATTACK defines."""
    _, neighbour = visitors
    kernel_id = neighbour.open_kernel()
    assert neighbour.run_in(kernel_id, ATTACK) == ""
    return lambda code: json.loads(neighbour.run_in(kernel_id, f"print(json.dumps({code}))"))


def listeners_of(user: str) -> list[Listener]:
    return sockets.of_processes({process.pid for process in running(user=user)})


def owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except FileNotFoundError:
        return None


def test_everything_but_the_server_is_closed_to_the_neighbour(
    session: Session, attack: Callable[[str], Any]
) -> None:
    unix = [one for one in session.listeners if one.kind == "unix"]
    # The kernel's five and one for the output of its children, and TensorBoard's.
    assert len(unix) >= 7
    assert any("/tensorboard-" in one.address for one in unix)
    for one in unix:
        assert not one.address.startswith("@"), one
        assert attack(f"first_words({asdict(one)})") == "PermissionError", one
    assert not [one for one in session.listeners if one.kind == "udp"]


def test_the_server_asks_the_neighbour_for_the_login(
    session: Session, attack: Callable[[str], Any]
) -> None:
    prefix = session.visitor._session_path
    paths = [
        session.address,
        f"{session.address}data/runs",
        f"{prefix}/tensorboard/?folder={FOLDER}",
        f"{prefix}/portal/tensorboard",
        f"{prefix}/portal/tensorboard/look?folder={FOLDER}",
        f"{prefix}/lab",
        f"{prefix}/api/contents",
        f"{prefix}/api/kernels",
        f"{prefix}/api/kernels/{session.kernel_id}/channels",
        f"{prefix}/terminals/websocket/1",
        f"{prefix}/files/.bashrc",
        f"{prefix}/proxy/22/",
    ]
    own_token = "{'Authorization': 'token ' + os.environ['JUPYTERHUB_API_TOKEN']}"
    upgrade = "{'Upgrade': 'websocket', 'Connection': 'Upgrade', 'Sec-WebSocket-Version': '13', "
    upgrade += "'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA=='}"
    for headers in ("{}", own_token, upgrade, f"{{**{upgrade}, **{own_token}}}"):
        for path in paths:
            answer = attack(f"asked({asdict(session.server)}, {path!r}, {headers})")
            # It does not come as far as a refusal: a neighbour's certificate is not the hub's.
            assert answer in ("SSLError", "SSLEOFError", "ConnectionResetError"), (path, headers)
    # The same paths are there for their user.
    for path in paths[:5]:
        assert session.visitor.session("GET", path.removeprefix(prefix)).status_code in (200, 302)


def test_the_session_listens_on_its_one_port_only(session: Session) -> None:
    """Server, kernel and its debugger, terminal and TensorBoard."""
    assert sockets.tcp_ports_of_job(HOST, session.job) == [session.server.port]


def test_what_child_processes_write_is_shown_all_the_same(session: Session) -> None:

    def is_shown() -> bool:
        # What a fork wrote last may come after the cell's end.
        said = session.visitor.run_in(session.kernel_id, CHILDREN)
        return sorted(said.split()) == ["forked", "pooled", "program", "spawned"]

    until(is_shown, seconds=60, what="a cell shows all that its children wrote")


def test_the_neighbour_cannot_look_into_processes_and_files(
    session: Session, attack: Callable[[str], Any], started_at: float
) -> None:
    socket = next(one.address for one in session.listeners if "/tensorboard-" in one.address)
    assert attack(f"listed({str(Path(socket).parent)!r})") == "PermissionError"
    for name in ("environ", "maps", "mem"):
        path = f"/proc/{session.server_pid}/{name}"
        assert attack(f"opened({path!r})") == "PermissionError", path
    for name in ("fd", "cwd", "root"):
        path = f"/proc/{session.server_pid}/{name}"
        assert attack(f"listed({path!r})") == "PermissionError", path
    # Nothing of the session's lies open where all can write.
    uid = pwd.getpwnam(HOST).pw_uid
    for place in ("/tmp", "/dev/shm", "/var/tmp"):  # noqa: S108 - looked at only
        for file in Path(place).iterdir():
            if owner(file) == uid and file.lstat().st_ctime >= started_at:
                assert file.lstat().st_mode & 0o077 == 0, file
