"""Whom the proxy takes for the hub, a service or a session: the real one, and servers with TLS."""

import http.client
import json
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import bootstrap
import pytest

from dsportal.hub import internal_tls
from dsportal.settings.hub import HubSettings
from jupyterhub_gpu_slurm.session.certificates import Authority
from tests.network.sockets import free_port

ROOT = Path(__file__).resolve().parents[3]
PROXY = ROOT / "deploy/ansible/roles/portal/files/proxy.mjs"
HERE = "127.0.0.1"


class Answer(BaseHTTPRequestHandler):
    """Says that it was reached."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "7")
        self.end_headers()
        self.wfile.write(b"reached")

    def log_message(self, *_: object) -> None:
        pass


class OverSocket(http.client.HTTPConnection):
    """Speaks to the proxy, as the front does."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.host)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the hub's, and that of a session whose node has the hub's own address."""
    state = tmp_path_factory.mktemp("state")
    hub = HubSettings(state_dir=str(state), internal_ssl=True)
    internal_tls.prepare(hub, datetime.now(UTC))
    folder = Path(hub.certificates_dir)
    authority = Authority.of_hub(folder, folder / "notebooks-ca_trust.crt")
    made = authority.issue("mallory", ["node001", HERE], timedelta(days=1), datetime.now(UTC))
    (folder / "session.crt").write_text(made["certificate"])
    (folder / "session.key").write_text(made["key"])
    return folder


@contextmanager
def _serving(name: Path) -> Iterator[int]:
    """Answer over TLS with this certificate; give the port."""
    server = ThreadingHTTPServer((HERE, 0), Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(name.with_suffix(".crt"), name.with_suffix(".key"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def reached(certificates: Path, tmp_path: Path) -> Callable[[str, str], bool]:
    """Say whether the proxy hands a request for a path to who shows a certificate."""

    def ask(certificate: str, path: str) -> bool:
        with _serving(certificates / certificate) as port:
            side = certificates / "proxy-client/proxy-client"
            settings = {
                "environment": str(
                    bootstrap.environment("proxy", bootstrap.CACHE / "environments")[0]
                ),
                "hub_url": f"https://{HERE}:{port}",
                "host_routing": False,
                "gate_cookie": "portal-gate",
                "socket": str(tmp_path / "proxy.sock"),
                "api_port": free_port(),
                "api_tls": None,
                "client_tls": {
                    "key": f"{side}.key",
                    "cert": f"{side}.crt",
                    "ca": str(certificates / "proxy-client-ca_trust.crt"),
                },
            }
            (tmp_path / "proxy.json").write_text(json.dumps(settings))
            argv = ["/usr/bin/node", str(PROXY), str(tmp_path / "proxy.json")]
            environment = {"CONFIGPROXY_AUTH_TOKEN": "x" * 32, "PATH": os.defpath}
            with subprocess.Popen(argv, env=environment, stderr=subprocess.DEVNULL) as proxy:
                try:
                    return _asked(settings["socket"], path) == (200, b"reached")
                finally:
                    proxy.kill()

    return ask


def _asked(address: object, path: str) -> tuple[int, bytes]:
    deadline = time.monotonic() + 60
    while True:
        connection = OverSocket(str(address))
        try:
            connection.request("GET", path, headers={"Host": "portal.example"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        finally:
            connection.close()


@pytest.mark.parametrize("path", ["/hub/login", "/"])
def test_only_the_hubs_certificate_makes_the_hub(
    reached: Callable[[str, str], bool], path: str
) -> None:
    assert reached("hub-internal/hub-internal", path)
    assert not reached("session", path)
