"""A stand-in for PowerScale's interface for programs: no such NAS is at hand.

It answers over TLS with a certificate of its own, asks for a user and a password, and knows the
addresses that `filesystem.onefs` uses, with answers of the form that Dell's SDK documents. Its
tiers hold a real folder: a file that nobody has read for 30 days goes to the cold tier when the job
SmartPoolsTree runs, all others to the hot one. What it says was not recorded from an appliance.
"""

import base64
import json
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

LOGIN = "statistics", "not a secret"
STATISTICS = {
    "ifs.bytes.out.rate": 2_680_000_000.0,
    "ifs.bytes.in.rate": 1_000_000.0,
    "cluster.disk.bytes.out.rate": 1_310_720_000.0,
    "cluster.disk.xfers.out.rate": 20_000.0,
    "cluster.disk.xfers.in.rate": 120.0,
}
COLD_SECONDS = 30 * 24 * 3600
TOTAL = 10**12


class StandIn:
    """The NAS; ``folder`` is what its path ``exported`` shows."""

    def __init__(self, folder: Path, exported: str) -> None:
        """Begin with everything hot."""
        self.folder, self.exported = folder, exported
        self.url = ""
        self.cold: set[Path] = set()
        self.jobs: dict[int, list[str]] = {}
        self.states = ["running", "succeeded"]
        """What a job is, each time that somebody asks; the last for ever."""
        self.keeps_access_times = True
        self.is_broken = False

    def answer(self, method: str, path: str, asked: list[tuple[str, str]], body: Any) -> Any:
        """Return what it says, ``None`` for an address that it does not know."""
        if path == "/platform/1/statistics/current":
            return {"stats": [_statistic(value) for name, value in asked if name == "key"]}
        if path == "/platform/1/filesystem/settings/access-time":
            return {"access_time": {"enabled": self.keeps_access_times, "precision": 86_400_000}}
        if path == "/platform/1/storagepool/storagepools":
            return {"storagepools": [self._pool("hot"), self._pool("cold")]}
        if path == "/platform/1/job/jobs" and method == "POST":
            assert body["type"] == "SmartPoolsTree"
            self._move(body["paths"])
            self.jobs[len(self.jobs) + 1] = list(self.states)
            return {"id": len(self.jobs)}
        number = path.removeprefix("/platform/1/job/jobs/")
        if number.isdecimal() and int(number) in self.jobs:
            left = self.jobs[int(number)]
            state = left.pop(0) if len(left) > 1 else left[0]
            return {"jobs": [{"id": int(number), "state": state, "type": "SmartPoolsTree"}]}
        return None

    def _files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]

    def _move(self, paths: list[str]) -> None:
        for path in paths:
            below = self.folder / Path(path).relative_to(self.exported)
            for file in below.rglob("*"):
                is_old = time.time() - file.stat().st_atime > COLD_SECONDS
                (self.cold.add if is_old and file.is_file() else self.cold.discard)(file)

    def _pool(self, name: str) -> dict[str, Any]:
        mine = [file for file in self._files() if (file in self.cold) == (name == "cold")]
        free = TOTAL - sum(file.stat().st_size for file in mine)
        usage = {"total_bytes": str(TOTAL), "free_bytes": str(free), "balanced": True}
        return {"name": name, "type": "tier", "usage": usage}


def _statistic(key: str) -> dict[str, Any]:
    if key not in STATISTICS:
        return {"key": key, "devid": 0, "error": "Unknown key", "error_code": 5, "value": None}
    now = int(time.time())
    return {"key": key, "devid": 0, "error": None, "time": now, "value": STATISTICS[key]}


@contextmanager
def stand_in(folder: Path, exported: str, secrets: Path) -> Iterator[StandIn]:
    """Run one; below ``secrets`` are its certificate ``ca.pem`` and a ``netrc`` file for it."""
    certificate, key = secrets / "ca.pem", secrets / "key.pem"
    subprocess.run(
        [
            *("/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=stand-in"),
            *("-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    login = secrets / "netrc"
    login.write_text(f'machine localhost login {LOGIN[0]} password "{LOGIN[1]}"\n')
    login.chmod(0o600)
    nas = StandIn(folder, exported)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(nas)) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        nas.url = f"https://localhost:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield nas
        server.shutdown()


@pytest.fixture
def nas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A stand-in for the NAS, which the programs under test trust and may log in to."""
    folder = tmp_path / "data"
    folder.mkdir()
    with stand_in(folder, "/ifs/data", tmp_path) as running:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        yield running


def _handler(nas: StandIn) -> type[BaseHTTPRequestHandler]:
    wanted = "Basic " + base64.b64encode(":".join(LOGIN).encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            self._answer(json.loads(self.rfile.read(size)))

        def _answer(self, body: Any) -> None:
            parts = urlsplit(self.path)
            said, status = None, 401
            if self.headers["Authorization"] == wanted:
                said = nas.answer(self.command, parts.path, parse_qsl(parts.query), body)
                status = 404 if said is None else 200
            if nas.is_broken:
                said, status = None, 503
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(said or {"errors": [{"code": str(status)}]}).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
