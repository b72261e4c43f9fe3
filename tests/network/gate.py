"""A way to a server that can be half closed: of each answer only so many bytes come through."""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_CHUNK = 16_384


@dataclass
class Gate:
    """What stands at ``port``, before the server at ``server_port``."""

    port: int
    server_port: int
    _open: threading.Event = field(default_factory=threading.Event)
    _most: int = 0

    def __post_init__(self) -> None:
        self._open.set()

    @contextmanager
    def half_closed(self, most: int) -> Iterator[None]:
        """Hold back what is more than ``most`` bytes of each connection, until the end."""
        self._most = most
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def open(self) -> None:
        """Let all through."""
        self._open.set()

    def forward(self, client: socket.socket) -> None:
        """Serve one connection."""
        with socket.create_connection(("127.0.0.1", self.server_port)) as server:
            asking = threading.Thread(target=_copy, args=(client, server), daemon=True)
            asking.start()
            sent = 0
            while chunk := _received(server):
                sent += len(chunk)
                if sent > self._most:
                    self._open.wait()
                try:
                    client.sendall(chunk)
                except OSError:
                    break
            _hang_up(client)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := _received(source):
            target.sendall(chunk)
    _hang_up(target)


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(_CHUNK)
    except OSError:
        return b""


def _hang_up(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@contextmanager
def opened(port: int, server_port: int) -> Iterator[Gate]:
    """Stand at a port until the end."""
    gate = Gate(port, server_port)

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            gate.forward(self.request)

    with _Server(("127.0.0.1", port), Connection) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        try:
            yield gate
        finally:
            listening.shutdown()
