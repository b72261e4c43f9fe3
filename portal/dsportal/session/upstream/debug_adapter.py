"""debugpy's adapter for ``debugger.py``: it listens nowhere, but takes sockets from the kernel.

A program of its own, in the kernel's Python. Tried with debugpy 1.6.3, 1.8.21 and 1.8.22, whose
adapter opens one TCP port for its clients and one for what they debug.
"""

import array
import socket
import sys
from contextlib import suppress

library, number = sys.argv[1:]
sys.path.insert(0, library)
from debugpy.adapter import clients, servers  # noqa: E402

del sys.path[0]


class NoListener(object):  # noqa: UP004
    """Stands for the port of what is debugged, which the adapter opens when it has none."""

    def getsockname(self):
        # type: () -> tuple[str, int]
        """Give no address."""
        return ("", 0)


def _received(control):
    # type: (socket.socket) -> socket.socket | None
    numbers = array.array("i")
    _, rights, _, _ = control.recvmsg(1, socket.CMSG_SPACE(numbers.itemsize))
    if not rights:
        return None  # the kernel has ended
    numbers.frombytes(rights[0][2])
    return socket.socket(fileno=numbers[0])


def main(control):
    # type: (socket.socket) -> None
    """Take the kernel's own end first, then one for each time that its debugger is on."""
    clients.listener = None
    servers.listener = NoListener()
    take = servers.Connection
    while True:
        connection = _received(control)
        if connection is None:
            return
        # One that has left again, or is leaving, must not keep out those that come after it.
        with suppress(OSError):
            take(connection)
        take = clients.Client


if __name__ == "__main__":
    main(socket.socket(fileno=int(number)))
