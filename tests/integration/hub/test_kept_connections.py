"""Connections kept for the next request: whoever sends that must be the one that closes them.

A request that is sent on a connection while the other side closes it is lost, and a page of
JupyterLab that lacks one of its scripts stays empty.
"""

import os
import time
from pathlib import Path

from dsportal.request_limits import SERVER_ARGUMENTS
from tests import faults
from tests.instance import USERS, Instance
from tests.visitor import session_of
from tests.waiting import until

SESSION_SECONDS = float(SERVER_ARGUMENTS["idle_connection_timeout"])
ESTABLISHED = "01"


def connections(pid: int, port: int) -> int:
    """Count the connections of a process to a port of this machine."""
    held = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            held.add(os.readlink(handle))
        except FileNotFoundError:
            continue
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(
        row[2].endswith(f":{port:04X}") and row[3] == ESTABLISHED and f"socket:[{row[9]}]" in held
        for row in rows
    )


def test_the_proxy_closes_what_it_does_not_use_before_a_session_would(portal: Instance) -> None:
    with session_of(portal, USERS[0]) as user:
        port, proxy = user.port(), faults.pid_of("proxy")
        user.session("GET", "/api/status").raise_for_status()
        asked = time.monotonic()
        assert connections(proxy, port) > 0
        left = SESSION_SECONDS - 2
        until(lambda: connections(proxy, port) == 0, seconds=left, what="the proxy closes it")
        assert time.monotonic() - asked > 5
        # The next request makes a new one.
        user.session("GET", "/api/status").raise_for_status()
        assert connections(proxy, port) > 0
