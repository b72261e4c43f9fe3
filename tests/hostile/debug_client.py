"""Somebody else on the node who speaks to whatever a user listens on, as to a debugger."""

import json
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

_LISTENS = "0A"


def main() -> None:
    """Print what each port of a user (by number) answers, by port."""
    uid = sys.argv[1]
    tables = [Path("/proc/net", name).read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    found = [line.split() for table in tables for line in table]
    ports = {int(one[1].split(":")[1], 16) for one in found if one[3] == _LISTENS and one[7] == uid}
    sys.stdout.write(json.dumps({port: evaluated(port) for port in sorted(ports)}))


def evaluated(port: int) -> str | None:
    """Have a debugger evaluate whose it is; nothing for what is none."""
    with suppress(OSError, ValueError), socket.create_connection(("127.0.0.1", port), 5) as end:
        end.settimeout(5)
        with end.makefile("rwb") as stream:
            ask(stream, "initialize", {"adapterID": "x"})
            ask(stream, "attach", {"connect": {"host": "127.0.0.1", "port": port}})
            while answer(stream).get("event") != "initialized":
                pass
            ask(stream, "configurationDone", {})
            ask(stream, "evaluate", {"expression": "__import__('os').getuid()", "context": "repl"})
            while (given := answer(stream)).get("command") != "evaluate":
                pass
            return str(given["body"]["result"])
    return None


def ask(stream: Any, command: str, arguments: dict[str, Any]) -> None:
    """Send a request of the Debug Adapter Protocol."""
    request = {"type": "request", "seq": 1, "command": command, "arguments": arguments}
    body = json.dumps(request).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    stream.flush()


def answer(stream: Any) -> dict[str, Any]:
    """Read the next message."""
    head = stream.readline()
    if not head.startswith(b"Content-Length:"):
        raise ValueError(head)
    stream.readline()
    return dict(json.loads(stream.read(int(head.split(b":")[1]))))


if __name__ == "__main__":
    main()
