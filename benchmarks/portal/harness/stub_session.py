#!/usr/bin/python3 -ISB
"""What a job runs in place of JupyterLab: it reports its port and answers, in 20 ms and 9 MB.

The benchmarks measure the hub and Slurm; 100 JupyterLabs on the two cores of one machine would
measure JupyterLab. As those, it tells the hub every five minutes that it was used. One program for
both sides:

*ours*: as ``dsportal.session`` it reads its orders on standard input and reports its port.
*upstream*, started in place of ``batchspawner-singleuser`` (as ``stub wrapper``): reports its port.
*upstream*, run by the real ``batchspawner-singleuser``: the port is in JUPYTERHUB_SERVICE_URL.
"""

import contextlib
import json
import os
import socket
import sys
import time

EVERYWHERE = "0.0.0.0"  # noqa: S104  # as a session on a compute node
ACTIVITY_SECONDS = 300.0
"""JupyterHub's default, as are the tenth more and less by which each is moved."""


def main() -> None:
    """Listen, report where, answer."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if "dsportal.session" in sys.argv:
        environment = json.loads(sys.stdin.read())["environment"]
        os.environ.update(environment)
        listener.bind((EVERYWHERE, 0))
        url = environment["PORTAL_PORT_CALLBACK_URL"]
        listener.listen(16)
        report(url, environment["JUPYTERHUB_API_TOKEN"], listener.getsockname()[1])
    elif "wrapper" in sys.argv:
        listener.bind((EVERYWHERE, 0))
        url = os.environ["JUPYTERHUB_API_URL"].rstrip("/") + "/batchspawner"
        listener.listen(16)
        report(url, os.environ["JUPYTERHUB_API_TOKEN"], listener.getsockname()[1])
    else:
        host = os.environ["JUPYTERHUB_SERVICE_URL"].split("/")[2]
        listener.bind((EVERYWHERE, int(host.rpartition(":")[2])))
        listener.listen(16)
    due = time.monotonic() + ACTIVITY_SECONDS * ord(os.urandom(1)) / 255
    while True:
        if (left := due - time.monotonic()) <= 0:
            report_activity()
            due += ACTIVITY_SECONDS * (0.9 + 0.2 * ord(os.urandom(1)) / 255)
            continue
        listener.settimeout(left)
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.recv(65536)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
            b"X-JupyterHub-Version: 6.1.1\r\nConnection: close\r\n\r\n{}"
        )
        connection.close()


def report(url: str, token: str, port: int) -> None:
    """Tell the hub the port, as the real ones do."""
    status = post(url, token, {"port": port})
    if not status.startswith(b"2"):
        sys.exit(f"the hub did not take the port: {status!r}")


def report_activity() -> None:
    """Tell the hub that the session was used now; one that does not answer is asked again later."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    name = os.environ.get("JUPYTERHUB_SERVER_NAME", "")
    used = {"last_activity": moment, "servers": {name: {"last_activity": moment}}}
    with contextlib.suppress(OSError, IndexError):
        post(os.environ["JUPYTERHUB_ACTIVITY_URL"], os.environ["JUPYTERHUB_API_TOKEN"], used)


def post(url: str, token: str, content: object) -> bytes:
    """Send JSON; return the status of the answer."""
    host, path = url.split("/", 3)[2:]
    name, number = host.rsplit(":", 1)
    body = json.dumps(content)
    connection = socket.create_connection((name, int(number)), timeout=60)
    connection.sendall(
        f"POST /{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: token {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"Connection: close\r\n\r\n{body}".encode()
    )
    status = connection.recv(65536).split(None, 2)[1]
    connection.close()
    return status


if __name__ == "__main__":
    main()
