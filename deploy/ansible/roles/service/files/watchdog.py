"""Run a service, and kill it when it answers nobody any more: ADDRESS SECONDS PROGRAM ARGUMENT...

A service that has ended is started again by systemd or supervisor; one that is frozen is there for
ever. This process becomes the service, so whoever manages it sees it alone. A child of it looks:

- It connects, says nothing more, and waits until the service has noticed that and has closed the
  connection, too. The kernel does not do that for a program that stands still. Nothing is asked
  and nothing logged, whatever the service speaks, TLS with client certificates included.
- Once the service has answered for the first time, which it may take any time for, it may be
  busy for SECONDS without a pause. Several tries in turn must have failed: a machine that itself
  stood still fails one.
- Then the service is killed (SIGKILL), for a frozen one takes no other signal.
"""

import os
import select
import signal
import socket
import sys

TRIES = 4


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


def has_ended(service: int, seconds: float) -> bool:
    """Wait; say whether the service's process has ended meanwhile."""
    return bool(select.select([service], [], [], seconds)[0])


def watch(service: int, address: tuple[str, int], seconds: float) -> None:
    """Look until the service ends, or end it."""
    pause = seconds / TRIES
    while not answers(address, pause):
        if has_ended(service, min(pause, 1)):
            return
    failed = 0
    while failed < TRIES:
        if has_ended(service, 0 if failed else pause):
            return
        failed = failed + 1 if answers(address, pause) is False else 0
    sys.stderr.write(f"{address[0]}:{address[1]} did not answer for {seconds:g} s: killed\n")
    signal.pidfd_send_signal(service, signal.SIGKILL)


def main() -> None:
    """Leave a child that watches, and become the service."""
    address, seconds, *command = sys.argv[1:]
    # Of the process, not of its number: that may be another's one day. Closed by exec.
    service = os.pidfd_open(os.getpid())
    if os.fork() == 0:
        # Signals from a terminal's keys, and those for a whole process group, are the service's.
        os.setsid()
        watch(service, parsed(address), float(seconds))
        os._exit(0)
    os.execv(command[0], command)  # noqa: S606  no shell is wanted


if __name__ == "__main__":
    main()
