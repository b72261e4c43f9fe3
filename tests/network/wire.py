"""A connection to the portal, for what no HTTP client would send."""

import contextlib
import socket
from urllib.parse import urlsplit

from tests.instance import Instance
from tests.network.tls import unchecking


class Wire:
    """One connection, spoken over as bytes."""

    def __init__(self, portal: Instance) -> None:
        self._portal = portal
        address = urlsplit(portal.url)
        plain = socket.create_connection((address.hostname, address.port), timeout=20)
        self._socket = unchecking().wrap_socket(plain)

    def send(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def statuses(self) -> list[int]:
        """Return the status of each answer until the other side closes; none: it just closed."""
        parts = self.text().split(b"HTTP/1.1 ")[1:]
        return [int(part[:3]) for part in parts]

    def text(self) -> bytes:
        """Return all that comes until the other side closes."""
        text = b""
        with contextlib.suppress(ConnectionResetError):
            while data := self._socket.recv(65536):
                text += data
        return text

    def first_status(self) -> int:
        """Return the status of the first answer; the connection may stay."""
        text = b""
        while b"\r\n" not in text:
            text += self._socket.recv(1)
        return int(text.split()[1])

    def close(self) -> None:
        self._socket.close()
