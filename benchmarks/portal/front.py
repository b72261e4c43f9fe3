"""What the front (nginx) costs and what it keeps away, against the proxy behind it asked directly.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.front [--asks 300]

As root, with ``PORTAL_TEST_KEEP=1`` on the portal of the tests where it runs. Interleaved, each
request on a connection that stays open:

- *page* and *script*: the login page and the largest program that it loads, through the front with
  TLS, and through the proxy's own socket without; the ratio is front to proxy;
- *login*: the whole login of a user through the front, while nothing else goes on, and while 1,150
  requests from other addresses were begun and not ended (heads, and bodies for the login).

The last line is one JSON object; times are milliseconds, sizes bytes.
"""

import argparse
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import httpx

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness.answer_times import figures
from tests import instance
from tests.instance import FOLDER_NAME, USERS, Instance
from tests.network.tls import unchecking
from tests.visitor import Visitor

_PROXY = f"/run/{FOLDER_NAME}/portal/proxy.sock"
_MANY = 1150
_HALF = {
    "heads": b"GET /hub/login HTTP/1.1\r\nHost: x\r\nX-A: ",
    "bodies": b"POST /hub/login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\na",
}


def _timed(client: httpx.Client, path: str) -> tuple[float, int]:
    started = time.perf_counter()
    answer = client.get(path)
    milliseconds = 1000 * (time.perf_counter() - started)
    answer.raise_for_status()
    return milliseconds, answer.num_bytes_downloaded


def _scripts(client: httpx.Client) -> str:
    found: list[str] = re.findall(
        r'<script[^>]* src="([^"]+\.js[^"]*)"', client.get("/hub/login").text
    )
    return max(found, key=lambda path: len(client.get(path).content))


def _compare(portal: Instance, asks: int) -> dict[str, object]:
    transport = httpx.HTTPTransport(uds=_PROXY)
    with (
        httpx.Client(base_url=portal.url) as front,
        httpx.Client(base_url="http://127.0.0.1", transport=transport) as proxy,
    ):
        found: dict[str, object] = {}
        for what, path in (("page", "/hub/login"), ("script", _scripts(front))):
            times: dict[str, list[float]] = {"front": [], "proxy": []}
            sizes = {}
            for _ in range(asks):
                for name, client in (("front", front), ("proxy", proxy)):
                    milliseconds, sizes[name] = _timed(client, path)
                    times[name].append(milliseconds)
            both = {name: figures(values) for name, values in times.items()}
            ratio = round(both["front"]["p95"] / both["proxy"]["p95"], 3)
            found[what] = {**both, "p95_ratio": ratio, "bytes": sizes}
    return found


@contextmanager
def _begun(portal: Instance, sent: bytes) -> Iterator[None]:
    address = urlsplit(portal.url)
    with ExitStack() as stack:
        for number in range(_MANY if sent else 0):
            plain = socket.create_connection(
                (address.hostname, address.port), source_address=(f"127.0.1.{number % 5 + 1}", 0)
            )
            stack.enter_context(unchecking().wrap_socket(plain)).sendall(sent)
        yield


def _logins(portal: Instance, sent: bytes, count: int = 20) -> list[float]:
    with _begun(portal, sent):
        times = []
        for _ in range(count):
            user = Visitor(portal, USERS[0])
            started = time.perf_counter()
            user.log_in().raise_for_status()
            times.append(1000 * (time.perf_counter() - started))
            user.close()
    return times


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--asks", type=int, default=300)
    given = parser.parse_args(arguments)
    measured = commit()
    with instance.running() as portal:
        compared = _compare(portal, given.asks)
        logins = {"quiet": figures(_logins(portal, b""))}
        logins |= {kind: figures(_logins(portal, sent)) for kind, sent in _HALF.items()}
    load = round(os.getloadavg()[0], 1)
    print(
        json.dumps(
            {
                "benchmark": "front",
                "milliseconds": compared,
                "login_milliseconds": logins,
                "goal": f"p95 of login under 1000 with {_MANY} requests begun",
                "load": load,
                **circumstances(measured),
            }
        )
    )


if __name__ == "__main__":
    main()
