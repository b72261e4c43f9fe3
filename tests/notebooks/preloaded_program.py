#!/usr/bin/python3 -IS
"""What stands for a kernel's interpreter: hands a program to the process that has its imports.

It is called as the interpreter is (``python -B FILE ...``, ``python -c CODE ...``), through a link
beside the socket of ``preloaded_server.py``. The program gets this process's standard streams,
folder and variables; this process passes signals on to it, and ends as it does.
"""

import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path

STATUS = struct.Struct("!i")
PASSED_ON = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2),
    signal.SIGABRT,
)


def main() -> None:
    """Have the program run, and end as it ends."""
    words = sys.argv[1:]
    while words[:1] in (["-B"], ["-u"]):
        del words[0]
    request = {"words": words, "cwd": str(Path.cwd()), "variables": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(str(Path(sys.argv[0]).with_name("socket")))
        socket.send_fds(server, [b"+"], [0, 1, 2])
        server.sendall(json.dumps(request).encode() + b"\n")
        (pid,) = STATUS.unpack(server.recv(STATUS.size, socket.MSG_WAITALL))
        for number in PASSED_ON:
            signal.signal(number, lambda number, _frame: os.kill(pid, number))
        (status,) = STATUS.unpack(server.recv(STATUS.size, socket.MSG_WAITALL))
    if os.WIFSIGNALED(status):
        fatal = os.WTERMSIG(status)
        if fatal != signal.SIGKILL:
            signal.signal(fatal, signal.SIG_DFL)
        os.kill(os.getpid(), fatal)
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main()
