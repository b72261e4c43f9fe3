"""The adapter by itself: between a debuggee and clients that come and go."""

import array
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import debugpy
import pytest

from tests.checkout import ROOT

PROGRAM = ROOT / "portal/dsportal/session/upstream/debug_adapter.py"
PROCESS = {"process": {"pid": 1, "ppid": 0}}


class Connection:
    """One end of a conversation in the Debug Adapter Protocol."""

    def __init__(self, control: socket.socket) -> None:
        self._end, theirs = socket.socketpair()
        rights = array.array("i", [theirs.fileno()])
        control.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        theirs.close()
        self._end.settimeout(10)
        self._file = self._end.makefile("rb")

    def send(self, **message: Any) -> None:
        body = json.dumps(message).encode()
        self._end.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def receive(self) -> dict[str, Any]:
        """Give the next message; an empty one at the end."""
        head = self._file.readline()
        if not head:
            return {}
        self._file.readline()
        return dict(json.loads(self._file.read(int(head.split(b":")[1]))))

    def ask(self, command: str) -> None:
        self.send(type="request", seq=1, command=command, arguments={"adapterID": "x"})
        while self.receive().get("command") != command:
            pass

    def answer_all(self) -> None:
        """Answer as a debuggee does."""
        while asked := self.receive():
            reply = {"type": "response", "request_seq": asked["seq"], "seq": 1, "success": True}
            self.send(**reply, command=asked["command"], body=PROCESS)

    def close(self) -> None:
        self._end.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._end.close()


@pytest.fixture
def control() -> Iterator[socket.socket]:
    """The kernel's end, whose adapter has the kernel's connection."""
    ours, theirs = socket.socketpair()
    number = theirs.fileno()
    library = str(Path(debugpy.__file__).parents[1])
    argv = [sys.executable, "-I", str(PROGRAM), library, str(number)]
    # It writes of each client that it cannot answer any more; the kernel does not keep that either.
    with subprocess.Popen(argv, pass_fds=(number,), stderr=subprocess.DEVNULL) as adapter, ours:
        theirs.close()
        debuggee = Connection(ours)
        debuggee._end.settimeout(None)
        answering = threading.Thread(target=debuggee.answer_all)
        answering.start()
        yield ours
        ours.close()
        debuggee._end.shutdown(socket.SHUT_RDWR)
        answering.join()
        debuggee.close()
        assert adapter.wait(timeout=30) == 0


def test_a_client_that_leaves_does_not_keep_out_the_next(control: socket.socket) -> None:
    for _ in range(100):
        client = Connection(control)
        client.ask("initialize")
        client.ask("disconnect")
        client.close()
