"""Import a framework once, and run programs in forks of this process, which need not do it again.

Run by a kernel's interpreter: ``python -B preloaded_server.py SOCKET MODULE...``. It ends, with all
programs that still run, when its standard input does.
"""

import builtins
import faulthandler
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import struct
import sys
import types
from contextlib import suppress
from pathlib import Path
from typing import Any

STATUS = struct.Struct("!i")
STDIN = 0


class PreloadError(RuntimeError):
    """What was imported has started threads, which a fork would lose."""


def programs(address: str) -> dict[str, Any]:
    """Fork for each program that is asked for; return only in these, with what is to be run."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{address}.new")
    listener.listen(64)
    Path(f"{address}.new").rename(address)  # who sees it can connect
    waiting = selectors.DefaultSelector()
    waiting.register(STDIN, selectors.EVENT_READ)
    waiting.register(listener, selectors.EVENT_READ)
    running: dict[socket.socket, tuple[int, int]] = {}
    while True:
        for key, _ in waiting.select():
            if key.fd == STDIN:
                for pid, _ in running.values():
                    os.kill(pid, signal.SIGKILL)
                os._exit(0)
            if key.fileobj is listener:
                client, _ = listener.accept()
                request, streams = asked(client)
                if request is None:
                    client.close()
                    continue
                pid = os.fork()
                if pid == 0:
                    for number, stream in enumerate(streams):
                        os.dup2(stream, number)
                    for one in (*streams, *(fd for _, fd in running.values())):
                        os.close(one)
                    # Each by itself: one that is found to be garbage later would close a descriptor
                    # of the program's that has its number.
                    waiting.close()
                    for connection in (client, listener, *running):
                        connection.close()
                    return request
                for stream in streams:
                    os.close(stream)
                tell(client, pid)
                running[client] = (pid, os.pidfd_open(pid))
                waiting.register(client, selectors.EVENT_READ, client)
                waiting.register(running[client][1], selectors.EVENT_READ, client)
            elif key.data in running:
                # The program has ended; or who asked for it has, and so shall it.
                client, (pid, descriptor) = key.data, running.pop(key.data)
                waiting.unregister(client)
                waiting.unregister(descriptor)
                if key.fileobj is client:
                    os.kill(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
                os.close(descriptor)
                if key.fileobj is not client:
                    tell(client, status)
                client.close()


def asked(client: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Read what is to be run, and its standard streams; ``None`` from one that has been killed."""
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    with client.makefile("rb") as stream:
        line = stream.readline()
    if line.endswith(b"\n"):
        return json.loads(line), streams
    for one in streams:
        os.close(one)
    return None, []


def tell(client: socket.socket, number: int) -> None:
    """Send a number to one that may have been killed."""
    with suppress(OSError):
        client.sendall(STATUS.pack(number))


def prepared(request: dict[str, Any]) -> types.CodeType:
    """Make this process what the interpreter would be before the program's first line."""
    os.environ.clear()
    os.environ.update(request["variables"])
    os.chdir(request["cwd"])
    first, *words = request["words"]
    main = types.ModuleType("__main__")
    vars(main)["__builtins__"] = builtins
    sys.modules["__main__"] = main
    if first == "-c":
        source, *words = words
        sys.argv = ["-c", *words]
        sys.path.insert(0, "")
        return compile(source, "<string>", "exec")
    file = Path(first)
    sys.argv = [first, *words]
    sys.path.insert(0, str(file.resolve().parent))
    main.__file__ = str(file.absolute())
    return compile(file.read_bytes(), first, "exec")


if __name__ == "__main__":
    faulthandler.enable()
    sys.path.pop(0)  # this program's folder
    for name in sys.argv[2:]:
        importlib.import_module(name)
    if len(os.listdir("/proc/self/task")) > 1:
        raise PreloadError(f"{sys.argv[2:]} start threads")
    # What is there is never garbage: looking through it would copy the memory of each fork.
    gc.collect()
    gc.freeze()
    code = prepared(programs(sys.argv[1]))
    exec(code, sys.modules["__main__"].__dict__)  # noqa: S102  # the program that was asked for
