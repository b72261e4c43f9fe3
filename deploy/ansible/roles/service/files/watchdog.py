"""Run a service, and kill it when it answers nobody any more: ADDRESS SECONDS PROGRAM ARGUMENT...

A service that has ended is started again by systemd or supervisor; one that is frozen is there for
ever. This process becomes the service, so whoever manages it sees it alone. A child of it looks:

- It connects, says nothing more, and waits until the service has noticed that and has closed the
  connection, too. The kernel does not do that for a program that stands still. Nothing is asked
  and nothing logged, whatever the service speaks, TLS with client certificates included.
- Once the service has answered for the first time, which it may take any time for, it may be
  busy for SECONDS without a pause. Several tries in turn must have failed: a machine that itself
  stood still fails one. Another program may have the address before: a hub that waits to take the
  place of another machine's.
- Then the service is killed (SIGKILL), for a frozen one takes no other signal.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time

TRIES = 4
_LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp


def parsed(address: str) -> tuple[str, int]:
    """Read HOST:PORT, where the host may be an IPv6 address in brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def answers(address: tuple[str, int], seconds: float) -> bool | None:
    """Say whether the service takes note of a connection; ``None`` where it cannot be asked."""
    try:
        with socket.create_connection(address, timeout=seconds) as connection:
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
    except (TimeoutError, ConnectionRefusedError):
        return False
    except ConnectionError:
        return True
    except OSError:
        # A name that nobody resolves, say: no fault of the service's.
        return None
    return True


def listens(pid: int, port: int) -> bool:
    """Say whether a process itself listens on a port, as far as that can be seen (proc(5))."""
    try:
        sockets = set()
        for name in ("tcp", "tcp6"):
            with open(f"/proc/net/{name}", encoding="ascii") as table:
                rows = [line.split() for line in table.readlines()[1:]]
            own = (row for row in rows if int(row[1].rpartition(":")[2], 16) == port)
            sockets |= {f"socket:[{row[9]}]" for row in own if row[3] == _LISTENS}
        folder = f"/proc/{pid}/fd"
        return not sockets.isdisjoint(_target(f"{folder}/{fd}") for fd in os.listdir(folder))
    except OSError:
        return True


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""  # closed meanwhile


def has_ended(service: int, seconds: float) -> bool:
    """Wait; say whether the service's process has ended meanwhile."""
    return bool(select.select([service], [], [], seconds)[0])


def watch(service: int, pid: int, address: tuple[str, int], seconds: float) -> None:
    """Look until the service ends, or end it."""
    pause = seconds / TRIES
    while not (listens(pid, address[1]) and answers(address, pause)):
        if has_ended(service, min(pause, 1)):
            return
    failed, wait = 0, pause
    while failed < TRIES:
        if has_ended(service, wait):
            return
        began = time.monotonic()
        if answers(address, pause) is False:
            # A connection that is refused takes no time.
            failed, wait = failed + 1, max(0, pause - (time.monotonic() - began))
        else:
            failed, wait = 0, pause
    sys.stderr.write(f"{address[0]}:{address[1]} did not answer for {seconds:g} s: killed\n")
    signal.pidfd_send_signal(service, signal.SIGKILL)


def main() -> None:
    """Leave a child that watches, and become the service."""
    address, seconds, *command = sys.argv[1:]
    # Of the process, not of its number: that may be another's one day. Closed by exec.
    pid = os.getpid()
    service = os.pidfd_open(pid)
    if os.fork() == 0:
        # Signals from a terminal's keys, and those for a whole process group, are the service's.
        os.setsid()
        watch(service, pid, parsed(address), float(seconds))
        os._exit(0)
    os.execv(command[0], command)  # noqa: S606  no shell is wanted


if __name__ == "__main__":
    main()
