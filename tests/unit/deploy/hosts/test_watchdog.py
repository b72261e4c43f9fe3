"""What ends a service that stands still: with real processes that are stopped for real."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.network.sockets import free_port
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[4]
FILE = ROOT / "deploy/ansible/roles/service/files/watchdog.py"

# Listens when it is told to, and takes note of each connection's end.
SERVICE = """
import socket, sys
sys.stdin.readline()
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", flush=True)
while True:
    connection, _ = server.accept()
    with connection:
        connection.recv(1)
    print("asked", flush=True)
"""
# Answers once, and then closes its socket when it is told to.
CLOSING = """
import socket, sys, time
sys.stdin.readline()
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    print("listens", flush=True)
    connection, _ = server.accept()
    connection.recv(1)
    connection.close()
    print("asked", flush=True)
    sys.stdin.readline()
print("closed", flush=True)
time.sleep(600)
"""
Service = subprocess.Popen[str]


@pytest.fixture
def watched() -> Iterator[Callable[[float], Service]]:
    """Start the service below the watchdog, with so many seconds."""
    processes = []

    def start(seconds: float, program: str = SERVICE) -> Service:
        port = free_port()
        argv = [sys.executable, "-IS", str(FILE), f"127.0.0.1:{port}", str(seconds)]
        process = subprocess.Popen(
            [*argv, sys.executable, "-c", program, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def listen(service: Service) -> None:
    """Let it listen, and wait until it was asked for the first time."""
    assert service.stdin is not None
    assert service.stdout is not None
    service.stdin.write("\n")
    service.stdin.flush()
    assert service.stdout.readline() == "listens\n"
    assert service.stdout.readline() == "asked\n"


def watcher_of(service: Service) -> int:
    """Return the number of the process that looks."""

    def child() -> int:
        text = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text()
        return int(text.split()[0]) if text.split() else 0

    return until(child, seconds=10, what="the watchdog looks")


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_a_service_that_stands_still_is_killed(watched: Callable[[float], Service]) -> None:
    service = watched(1)
    listen(service)
    os.kill(service.pid, signal.SIGSTOP)
    assert service.wait(timeout=60) == -signal.SIGKILL
    assert service.stderr is not None
    assert "did not answer for 1 s: killed" in service.stderr.readline()


def test_a_service_may_take_any_time_until_it_listens(watched: Callable[[float], Service]) -> None:
    service = watched(0.2)
    # It is asked in vain for longer than a service that once answered may be silent.
    with pytest.raises(subprocess.TimeoutExpired):
        service.wait(timeout=2)
    listen(service)
    os.kill(service.pid, signal.SIGSTOP)
    assert service.wait(timeout=60) == -signal.SIGKILL


def test_another_program_at_its_address_is_not_the_service(
    watched: Callable[[float], Service],
) -> None:
    service = watched(0.4)
    assert isinstance(service.args, list)
    port = str(service.args[-1])
    with subprocess.Popen(
        [sys.executable, "-c", SERVICE, port],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "listens\n"
        # It answers for longer than the service, which waits, may be silent once it has.
        with pytest.raises(subprocess.TimeoutExpired):
            service.wait(timeout=1)
        other.kill()
    with pytest.raises(subprocess.TimeoutExpired):
        service.wait(timeout=1)
    listen(service)


def test_one_that_refuses_connections_has_as_long_as_one_that_is_silent(
    watched: Callable[..., Service],
) -> None:
    service = watched(12, CLOSING)
    listen(service)
    assert service.stdin is not None
    # As a service at its end, which has closed its socket already.
    service.stdin.write("\n")
    service.stdin.flush()
    assert service.stdout is not None
    assert service.stdout.readline() == "closed\n"
    # It is asked again within 3 s.
    with pytest.raises(subprocess.TimeoutExpired):
        service.wait(timeout=5)


def test_a_service_that_answers_is_asked_again_and_left_alone(
    watched: Callable[[float], Service],
) -> None:
    service = watched(0.4)
    listen(service)
    assert service.stdout is not None
    # As often as would be enough to kill it.
    assert [service.stdout.readline() for _ in range(5)] == ["asked\n"] * 5
    assert service.poll() is None


def test_one_that_was_busy_for_less_is_left_alone(watched: Callable[[float], Service]) -> None:
    service = watched(600)
    listen(service)
    os.kill(service.pid, signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        service.wait(timeout=2)
    os.kill(service.pid, signal.SIGCONT)
    assert service.poll() is None


def test_the_watchdog_ends_with_its_service(watched: Callable[[float], Service]) -> None:
    service = watched(600)
    listen(service)
    watcher = watcher_of(service)
    service.terminate()
    assert service.wait(timeout=60) == -signal.SIGTERM
    until(lambda: not is_there(watcher), seconds=60, what="the watchdog has ended")


def test_the_manager_sees_the_service_alone(watched: Callable[[float], Service]) -> None:
    service = watched(600)
    listen(service)
    command = Path(f"/proc/{service.pid}/cmdline").read_bytes().split(b"\0")
    assert command[1] == b"-c"
    opened = [os.readlink(link) for link in Path(f"/proc/{service.pid}/fd").iterdir()]
    assert not [name for name in opened if "pidfd" in name]
