"""Checks of the hub and the proxy, asked as a browser asks."""

import json
import socket
import ssl
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

from dsportal.doctor.expected import ExpectedHub
from dsportal.doctor.finding import Finding, failed, ok

_SECONDS = 5.0
_LONGEST_ANSWER = 10_000_000
_HUB_STEP = "start the services proxy and hub, and read the end of hub.log"
NO_ANSWER = (OSError, HTTPException)
"""What `asked` raises where nothing answers."""


@dataclass(frozen=True)
class Reply:
    """An answer; ``date`` is the header of that name."""

    status: int
    date: str
    body: bytes


def asked(url: str, path: str, token: str = "") -> Reply:
    """Send one request.

    The certificate is not checked: whether one may trust it, the check of its file says, and this
    may go to another name of the same host.
    """
    place = urlsplit(url)
    host, port = place.hostname or "", place.port
    connection: HTTPConnection
    if place.scheme == "https":
        trusting = ssl.create_default_context()
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        connection = HTTPSConnection(host, port, timeout=_SECONDS, context=trusting)
    else:
        connection = HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.request(
            "GET", path, headers={"Authorization": f"Bearer {token}"} if token else {}
        )
        answer = connection.getresponse()
        return Reply(answer.status, answer.headers["Date"] or "", answer.read(_LONGEST_ANSWER))
    finally:
        connection.close()


def hub(expected: ExpectedHub) -> Finding:
    """Ask for the hub's version, through the proxy."""
    try:
        reply = asked(expected.public_url, "/hub/api/")
    except NO_ANSWER as error:
        return failed(f"nothing answers at {expected.public_url}: {error}", _HUB_STEP)
    if reply.status != 200:
        return failed(f"nginx answers, the hub behind it does not ({reply.status})", _HUB_STEP)
    try:
        return ok(f"JupyterHub {json.loads(reply.body)['version']} answers through the proxy")
    except (ValueError, KeyError, TypeError):
        step = f"see what listens at {expected.public_url}"
        return failed("what answers is not the hub", step)


def database(expected: ExpectedHub) -> Finding:
    """Ask the hub for what it cannot tell without its database: whose a token is."""
    try:
        token = Path(expected.metrics_token_file).read_text(encoding="utf-8").strip()
        status = asked(expected.public_url, "/hub/metrics", token).status
    except NO_ANSWER as error:
        return failed(f"not known: {error}", _HUB_STEP)
    if status == 403:
        return failed("the hub does not know its own token", "restart the hub")
    if status != 200:
        return failed(f"the hub answers {status}", "read the end of hub.log")
    return ok("the hub reads it")


def proxy_api(expected: ExpectedHub) -> Finding:
    """Ask whether the proxy takes the hub's instructions."""
    place = urlsplit(expected.proxy_api_url)
    try:
        with socket.create_connection((place.hostname or "", place.port or 80), timeout=_SECONDS):
            return ok("listens")
    except OSError as error:
        return failed(f"{error.strerror or error}", "start the service proxy")
