#!/usr/bin/python3 -ISB
"""What a job runs in place of JupyterLab: it reports its port and answers, in 20 ms and 9 MB.

The benchmarks measure the hub and Slurm; 100 JupyterLabs on the two cores of one machine would
measure JupyterLab. One program for both sides:

*ours*: as ``dsportal.session`` it reads its orders on standard input and reports its port.
*upstream*, started in place of ``batchspawner-singleuser`` (as ``stub wrapper``): reports its port.
*upstream*, run by the real ``batchspawner-singleuser``: the port is in JUPYTERHUB_SERVICE_URL.
"""

import json
import os
import socket
import sys

EVERYWHERE = "0.0.0.0"  # noqa: S104  # as a session on a compute node


def main() -> None:
    """Listen, report where, answer."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if "dsportal.session" in sys.argv:
        environment = json.loads(sys.stdin.read())["environment"]
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
    while True:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
            b"X-JupyterHub-Version: 6.1.1\r\nConnection: close\r\n\r\n{}"
        )
        connection.close()


def report(url: str, token: str, port: int) -> None:
    """Tell the hub the port, as the real ones do."""
    host, path = url.split("/", 3)[2:]
    name, number = host.rsplit(":", 1)
    body = json.dumps({"port": port})
    connection = socket.create_connection((name, int(number)), timeout=60)
    connection.sendall(
        f"POST /{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: token {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"Connection: close\r\n\r\n{body}".encode()
    )
    status = connection.recv(65536).split(None, 2)[1]
    connection.close()
    if not status.startswith(b"2"):
        sys.exit(f"the hub did not take the port: {status!r}")


if __name__ == "__main__":
    main()
