"""A session in an image: whose listener the hub is told of. The image's program is a stand-in."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from dsportal.session import in_image
from dsportal.session_schema import SessionImage

# In the place of Apptainer with what it runs: listens as one of two users until the hub has heard
# of the port, or, where that is never to be, until it is told to end.
PROGRAM = """\
import os, signal, socket, sys, time
from urllib.parse import urlsplit

kind, heard = sys.argv[1:3]
port = urlsplit(os.environ["APPTAINERENV_JUPYTERHUB_SERVICE_URL"]).port

def listening(family=socket.AF_INET, reuse=True):
    end = socket.socket(family)
    if family == socket.AF_INET6:
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
    end.bind(("", port))
    end.listen()
    return end

def refused(**how):
    try:
        listening(**how).close()
    except OSError:
        return True
    return False

child = os.fork() if kind == "stranger" else 0
if child:
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    os.waitpid(child, 0)
    sys.exit(0)
if kind == "stranger":
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
if kind == "guard":
    sys.exit(40 + refused(reuse=False) + refused(family=socket.AF_INET6))
listens = listening()
while not os.path.exists(heard):
    time.sleep(0.05)
"""


class Hub:
    """Keeps what it is told."""

    def __init__(self, heard: Path) -> None:
        self.ports: list[int] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hub.ports.append(json.loads(body)["port"])
                self.send_response(204)
                self.end_headers()
                heard.touch()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/port"

    @contextmanager
    def listening(self) -> Iterator[None]:
        with self.server:
            thread = threading.Thread(target=self.server.serve_forever)
            thread.start()
            try:
                yield
            finally:
                self.server.shutdown()
                thread.join()


def served(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> tuple[int, list[int]]:
    """Run a session whose image does as ``kind`` says; give its exit code and reported ports."""
    heard = folder / "heard"
    program = folder / "apptainer"
    program.write_text(
        f"#!{sys.executable} -I\nimport sys\nsys.argv = ['', {kind!r}, {str(heard)!r}]\n{PROGRAM}"
    )
    program.chmod(0o755)
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    order = SessionImage("The image", "/image.sif", str(program))
    hub = Hub(heard)
    with hub.listening():
        return in_image.serve(order, in_image.ImageContext(folder, folder, ()), hub.url), hub.ports


def test_the_hub_is_told_of_the_images_own_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, ports = served(tmp_path, monkeypatch, "own")
    assert (code, len(ports)) == (0, 1)


@pytest.mark.root
def test_the_hub_is_not_told_of_another_users_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    code, ports = served(tmp_path, monkeypatch, "stranger")
    assert (code, ports) == (1, [])
    assert "Another user listens on this session's port" in caplog.text


def test_the_port_is_held_for_the_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not to be had without asking for a port in use, and not at all at addresses of IPv6."""
    code, _ = served(tmp_path, monkeypatch, "guard")
    assert code == 42
