"""ipykernel's debugger as it is, with our file of configuration: no port, and nobody else's."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.instance import ROOT
from tests.network import sockets
from tests.unit.session.upstream.conftest import Start
from tests.waiting import until

DEBUGGER = ROOT / "portal/dsportal/session/upstream/debugger.py"
CODE = """\
def double(number):
    result = 2 * number
    return result
print(double(21))
"""
FORKS = """
import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(double, [1, 2]))
"""
OWN_USE = """
import debugpy
host, port = debugpy.listen(("127.0.0.1", 0))
print(f"port {port}")
"""
# What stands for the adapter says one thing; as soon as that was read, another, and leaves.
LAST_WORDS = """
import asyncio, runpy, socket, sys
AdapterStream = runpy.run_path(sys.argv[1])["AdapterStream"]
class End(socket.socket):
    def recv_into(self, *arguments):
        read = super().recv_into(*arguments)
        if self.next_words:
            self.other.sendall(self.next_words.pop())
            self.other.close()
        return read
class Adapter:
    def connection(self):
        ours, self.other = socket.socketpair()
        end = End(fileno=ours.detach())
        end.other, end.next_words = self.other, [b"last"]
        return end
async def main():
    adapter, received = Adapter(), []
    stream = AdapterStream(adapter, received.append)
    stream.connect("")
    await asyncio.sleep(0)  # the stream awaits something
    adapter.other.sendall(b"first")
    await asyncio.sleep(0.1)
    stream.disconnect("")
    print(received)
asyncio.run(main())
"""
# In a network of its own: has all ports that programs are given there, as nobody; notes who comes.
STRANGER = """
import os, select, socket, subprocess, sys
first, last, noted, *argv = sys.argv[1:]
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as file:
    file.write(f"{first} {last}")
listens, says = os.pipe()
with open(noted, "wb", buffering=0) as file:
    if os.fork() == 0:
        os.setgid(65534)
        os.setuid(65534)
        ports = range(int(first), int(last) + 1)
        listening = [socket.create_server(("127.0.0.1", port)) for port in ports]
        os.write(says, b"+")
        while True:
            for one in select.select(listening, [], [])[0]:
                one.accept()[0].close()
                file.write(b"+")
os.read(listens, 1)
os.execv(argv[0], argv)
"""


class Debugging:
    """What JupyterLab asks of a kernel's debugger; see the Debug Adapter Protocol."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client
        self._number = 0
        self._cell = ""

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Ask, and return what is answered."""
        self._number += 1
        request = {"type": "request", "seq": self._number, "command": command}
        message = self._client.session.msg("debug_request", request | {"arguments": arguments})
        self._client.control_channel.send(message)
        while True:
            reply = self._client.get_control_msg(timeout=30)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return dict(reply["content"].get("body", {}))

    def switch_on(self) -> None:
        self.ask("initialize", adapterID="", linesStartAt1=True, columnsStartAt1=True)
        self.ask("attach")

    def switch_off(self) -> None:
        self.ask("disconnect", restart=False, terminateDebuggee=False)

    def stop_in(self, code: str, line: int) -> tuple[int, Path]:
        """Run a cell until it stops at a line; return the thread, and the cell's file."""
        file = self.ask("dumpCell", code=code)["sourcePath"]
        self.ask("setBreakpoints", source={"path": file}, breakpoints=[{"line": line}])
        self.ask("configurationDone")
        self._cell = self._client.execute(code)
        return self.stopped_at(), Path(file)

    def stopped_at(self) -> int:
        while True:
            message = self._client.get_iopub_msg(timeout=30)
            if message["content"].get("event") == "stopped":
                return int(message["content"]["body"]["threadId"])

    def variables(self, thread: int) -> dict[str, str]:
        frame = self.ask("stackTrace", threadId=thread)["stackFrames"][0]
        scope = self.ask("scopes", frameId=frame["id"])["scopes"][0]
        found = self.ask("variables", variablesReference=scope["variablesReference"])["variables"]
        return {one["name"]: one["value"] for one in found}

    def go_on(self, thread: int) -> str:
        """Continue to the end of the cell; return what it wrote since then."""
        self.ask("continue", threadId=thread)
        return self.rest_of_cell()

    def rest_of_cell(self) -> str:
        written = ""
        while True:
            message = self._client.get_iopub_msg(timeout=30)
            if message["msg_type"] == "stream":
                written += message["content"]["text"]
            # ipykernel runs a cell of its own to start the debugger.
            cell = message["parent_header"].get("msg_id")
            if message["content"].get("execution_state") == "idle" and cell == self._cell:
                return written

    def run(self, code: str) -> str:
        self._cell = self._client.execute(code)
        return self.rest_of_cell()


@pytest.fixture
def debugging(client: BlockingKernelClient) -> Iterator[Debugging]:
    """The debugger of the shared kernel, switched on."""
    debugging = Debugging(client)
    debugging.switch_on()
    yield debugging
    debugging.switch_off()
    with suppress(Empty):
        while True:
            client.get_iopub_msg(timeout=0.2)


def processes_of(manager: KernelManager) -> list[int]:
    """Return the kernel's process and its children: the adapter is the one."""
    kernel = int(manager.provisioner.pid)  # type: ignore[union-attr]
    argv = ["/usr/bin/pgrep", "--parent", str(kernel)]
    children = subprocess.run(argv, check=False, capture_output=True, text=True).stdout.split()
    return [kernel, *map(int, children)]


def test_a_kernel_starts_without_a_word(start_kernel: Start, tmp_path: Path) -> None:
    said = tmp_path / "said"
    _, client = start_kernel("/bin/sh", "-c", f'exec "$@" 2> {said}', "sh")
    shown: list[str] = []
    client.execute_interactive(
        "import os; print(sorted(name for name in os.environ if 'VALIDATION' in name))",
        output_hook=lambda message: shown.append(message["content"].get("text", "")),
        timeout=60,
    )
    assert "".join(shown).strip() == "[]"
    assert said.read_text() == ""


def test_a_cell_stops_shows_its_variables_and_continues(debugging: Debugging) -> None:
    thread, _ = debugging.stop_in(CODE, 2)
    assert debugging.variables(thread) == {"number": "21"}
    debugging.ask("next", threadId=thread)
    assert debugging.variables(debugging.stopped_at()) == {"number": "21", "result": "42"}
    assert debugging.go_on(thread).strip() == "42"


def test_neither_the_kernel_nor_its_adapter_listens(
    debugging: Debugging, manager: KernelManager
) -> None:
    thread, file = debugging.stop_in(CODE, 2)
    processes = processes_of(manager)
    assert len(processes) == 2
    found = sockets.of_processes(set(processes))
    folder = Path(manager.connection_file).parent
    assert {Path(one.address).parent for one in found} == {folder}
    assert sockets.of_processes(set(processes[1:])) == []
    # Nor is a cell written where others could have made its folder before.
    assert file.read_text() == CODE
    assert file.parent.parent == folder
    assert file.parent.stat().st_mode & 0o077 == 0
    debugging.go_on(thread)


def test_no_secret_is_on_a_command_line(debugging: Debugging, manager: KernelManager) -> None:
    _, adapter = processes_of(manager)
    argv = Path(f"/proc/{adapter}/cmdline").read_text().split("\0")
    folder = Path(manager.connection_file).parent
    assert argv[:3] == [sys.executable, "-I", str(folder / "debug_adapter.py")]
    assert Path(argv[3], "debugpy").is_dir()
    assert argv[4].isdigit()
    assert argv[5:] == [""]


def test_a_breakpoint_does_not_stop_forks(debugging: Debugging) -> None:
    thread, _ = debugging.stop_in(CODE, 2)
    debugging.go_on(thread)
    assert debugging.run(FORKS).strip() == "[2, 4]"


def test_it_can_be_switched_off_and_on_again(debugging: Debugging) -> None:
    debugging.switch_off()
    debugging.switch_off()  # as two windows of JupyterLab do
    assert debugging.run(CODE).strip() == "42"
    debugging.switch_on()
    thread, _ = debugging.stop_in(CODE, 3)
    assert debugging.variables(thread) == {"number": "21", "result": "42"}
    debugging.go_on(thread)


def test_the_last_answer_is_heard_of_an_adapter_that_leaves_at_once() -> None:
    argv = [sys.executable, "-c", LAST_WORDS, str(DEBUGGER)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("['first', 'last']\n", "")


def test_the_adapter_outlives_an_interrupt_and_ends_with_its_kernel(start_kernel: Start) -> None:
    manager, client = start_kernel()
    debugging = Debugging(client)
    debugging.switch_on()
    _, adapter = processes_of(manager)
    manager.interrupt_kernel()
    thread, _ = debugging.stop_in(CODE, 2)
    assert debugging.go_on(thread).strip() == "42"
    manager.restart_kernel(now=True)
    until(
        lambda: not Path(f"/proc/{adapter}/exe").exists(), seconds=10, what="the adapter has ended"
    )


def test_what_a_program_asks_of_debugpy_itself_is_done(start_kernel: Start) -> None:
    _, client = start_kernel()
    (_, port) = Debugging(client).run(OWN_USE).split()
    with socket.create_connection(("127.0.0.1", int(port)), timeout=10) as end:
        assert end.recv(15) == b"Content-Length:"


@pytest.mark.root
def test_a_stranger_with_all_ports_gets_nothing_and_stops_nothing(
    start_kernel: Start, tmp_path: Path
) -> None:
    noted = tmp_path / "noted"
    before = ["/usr/bin/unshare", "--net", sys.executable, "-c", STRANGER]
    _, client = start_kernel(*before, "40000", "40007", str(noted))
    taken = "import socket; socket.socket().bind(('127.0.0.1', 0))"
    debugging = Debugging(client)
    client.execute_interactive(taken, timeout=30, output_hook=lambda _: None)
    assert noted.read_bytes() == b""
    asked = client.execute_interactive(taken, timeout=30, output_hook=lambda _: None)
    assert asked["content"]["ename"] == "OSError"
    debugging.switch_on()
    thread, _ = debugging.stop_in(CODE, 2)
    assert debugging.variables(thread) == {"number": "21"}
    assert debugging.go_on(thread).strip() == "42"
    time.sleep(0.5)
    assert noted.read_bytes() == b""
