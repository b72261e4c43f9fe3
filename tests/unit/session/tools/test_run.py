"""A web tool's run, with real programs and real networks."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dsportal.session.tools import gate as tool_gate
from dsportal.session.tools import run as tool_run
from dsportal.session.tools import words
from dsportal.session.tools.run import ToolContext, ToolError, ToolRun
from dsportal.session_schema import WebTool
from tests.network.sockets import free_port
from tests.waiting import until

# Answers each request with its first line and the variable of an environment.
SERVER = """
import http.server, os, socket, socketserver, sys
class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        shown = [os.environ.get(name, "not set") for name in ("SHOWN", "JUPYTERHUB_API_TOKEN")]
        body = "\\n".join([self.requestline, *shown])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.encode())
    def address_string(self):
        return "somebody"
print("is told", *sys.argv[1:], flush=True)
where = sys.argv[1]
if "/" in where:
    server = socketserver.ThreadingUnixStreamServer(where, Pages)
else:
    server = http.server.HTTPServer(("127.0.0.1", int(where)), Pages)
server.serve_forever()
"""
MODULES = """
module() {
    shift
    [ "$1" = there ] || { echo "The following module(s) are unknown: $1" >&2; return 1; }
    export SHOWN="of the module"
}
"""


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    for name in ("home", "folder"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "init").write_text(MODULES)
    (tmp_path / "server.py").write_text(SERVER)
    environment = {"PATH": "/usr/bin:/bin", "JUPYTERHUB_API_TOKEN": "secret"}
    return ToolContext(
        home=tmp_path / "home",
        folder=tmp_path / "folder",
        base_url="/user/u/",
        modules_init=str(tmp_path / "init"),
        environment=environment,
    )


def server(context: ToolContext, *arguments: str, **keys: object) -> WebTool:
    """Order the server from above."""
    program = str(context.folder.parent / "server.py")
    settings = WebTool(title="Server", command=(sys.executable, "-I", program, *arguments))
    return replace(settings, **keys)  # type: ignore[arg-type]


def on_a_port(context: ToolContext, *, own_network: bool, **keys: object) -> WebTool:
    return server(context, "{port}", listens="port", has_own_network=own_network, **keys)


def ask(context: ToolContext) -> str:
    """Ask the tool for a page, as the session's server does."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(context.socket_of("tool")))
        connection.sendall(b"GET /page HTTP/1.0\r\n\r\n")
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()


async def asked(settings: WebTool, context: ToolContext) -> tuple[str, ToolRun]:
    """Start a tool, ask it for a page, stop it."""
    run = ToolRun("tool", settings, context)
    await run.start()
    try:
        return await asyncio.to_thread(ask, context), run
    finally:
        await run.stop()


@pytest.mark.parametrize("own_network", [False, True])
def test_a_tool_listens_on_a_socket_in_the_users_folder(
    context: ToolContext, own_network: bool
) -> None:
    settings = server(context, "{unix_socket}", has_own_network=own_network)
    answer, run = asyncio.run(asked(settings, context))
    assert "GET /page HTTP/1.0" in answer
    assert run.output.startswith(f"is told {context.folder}/tool-tool.sock")
    assert not run.is_running


@pytest.mark.parametrize("own_network", [False, True])
def test_a_port_is_reached_through_a_socket(context: ToolContext, own_network: bool) -> None:
    settings = on_a_port(context, own_network=own_network)
    assert "GET /page HTTP/1.0" in asyncio.run(asked(settings, context))[0]


def test_the_gates_socket_is_the_users_alone(context: ToolContext) -> None:
    async def mode() -> int:
        run = ToolRun("tool", on_a_port(context, own_network=True), context)
        await run.start()
        try:
            return context.socket_of("tool").stat().st_mode
        finally:
            await run.stop()

    assert asyncio.run(mode()) & 0o077 == 0


def test_a_port_in_a_network_of_its_own_is_not_the_nodes(context: ToolContext) -> None:
    port = free_port()

    async def look(own_network: bool) -> tuple[str, set[int]]:
        settings = on_a_port(context, own_network=own_network, port=port)
        run = ToolRun("tool", settings, context)
        await run.start()
        try:
            return await asyncio.to_thread(ask, context), tool_gate.owners_of_port(port)
        finally:
            await run.stop()

    answer, owners = asyncio.run(look(own_network=True))
    assert ("200 OK" in answer, owners) == (True, set())
    answer, owners = asyncio.run(look(own_network=False))
    assert ("200 OK" in answer, owners) == (True, {os.getuid()})


@contextmanager
def somebody_elses(program: Path, port: int) -> Iterator[None]:
    """Let another user's program have a port."""
    argv = [sys.executable, "-I", "-c", program.read_text(), str(port)]
    with subprocess.Popen(argv, user=65534, group=65534, extra_groups=[]) as process:
        until(lambda: tool_gate.owners_of_port(port), seconds=20, what="the port is taken")
        try:
            yield
        finally:
            process.terminate()


@pytest.mark.root
def test_the_program_of_another_user_is_not_taken_for_the_tool(context: ToolContext) -> None:
    port = free_port()
    settings = WebTool(
        title="Sleeper",
        command=("sleep", "60"),
        listens="port",
        port=port,
        start_timeout_seconds=1,
    )
    with somebody_elses(context.folder.parent / "server.py", port):
        assert tool_gate.owners_of_port(port) == {65534}
        with pytest.raises(ToolError, match=words.silent("Sleeper", 1)):
            asyncio.run(asked(settings, context))
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert connection.recv(4) == b"HTTP"


def test_a_tool_has_its_modules_its_variables_and_no_token(context: ToolContext) -> None:
    settings = server(context, "{unix_socket}", modules=("there",))
    answer, _ = asyncio.run(asked(settings, context))
    assert answer.endswith("of the module\nnot set")
    with_variable = replace(settings, environment={"SHOWN": "~/logs"})
    answer, _ = asyncio.run(asked(with_variable, context))
    assert answer.endswith(f"{context.home}/logs\nnot set")


def test_placeholders_say_where_browsers_see_it(context: ToolContext) -> None:
    settings = server(context, "{unix_socket}", "--prefix={base_url}/x", "~/a", "b~/c", "{other}")
    _, run = asyncio.run(asked(settings, context))
    argv = run.output.splitlines()[0].split()[3:]
    assert argv == ["--prefix=/user/u/tools/tool/x", f"{context.home}/a", "b~/c", "{other}"]


def test_whoever_wants_whole_paths_is_asked_for_one(context: ToolContext) -> None:
    settings = server(context, "{unix_socket}", absolute_url=True)
    _, run = asyncio.run(asked(settings, context))
    assert "GET /user/u/tools/tool/ HTTP/1.1" in run.output


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (
            {"command": ("sh", "-c", "echo no licence; exit 3")},
            words.ended("Tool", 3),
        ),
        ({"command": ("sh", "-c", "kill -9 $$")}, "with exit code 137"),
        ({"command": ("no-such-program",)}, words.no_program("Tool", "no-such-program")),
        (
            {"command": ("no-such-program",), "modules": ("there",)},
            words.no_program("Tool", "no-such-program", "there"),
        ),
        (
            {"command": ("true",), "modules": ("missing",)},
            r"Loading missing failed. The module system says:\n.* unknown: missing",
        ),
        (
            {"command": ("sleep", "60"), "start_timeout_seconds": 1},
            words.silent("Tool", 1),
        ),
    ],
)
def test_a_tool_that_does_not_start_says_why(
    context: ToolContext, keys: dict[str, object], told: str
) -> None:
    settings = WebTool(title="Tool", **keys)  # type: ignore[arg-type]
    with pytest.raises(ToolError, match=told):
        asyncio.run(asked(settings, context))


def test_the_end_of_the_output_is_kept(context: ToolContext) -> None:
    async def output() -> str:
        command = ("sh", "-c", "seq 1000; printf last; exit 1")
        run = ToolRun("tool", WebTool(title="Tool", command=command), context)
        with pytest.raises(ToolError):
            await run.start()
        return run.output

    lines = asyncio.run(output()).splitlines()
    assert lines[-2:] == ["1000", "last"]
    assert len(lines) == 40


def test_a_letter_that_two_readings_share_is_whole(context: ToolContext) -> None:
    script = "print('x' * 4095 + 'é', flush=True); raise SystemExit(1)"
    settings = WebTool(title="Tool", command=(sys.executable, "-X", "utf8", "-c", script))

    async def output() -> str:
        run = ToolRun("tool", settings, context)
        with pytest.raises(ToolError):
            await run.start()
        return run.output

    assert asyncio.run(output()).endswith("xé")


def test_a_node_without_user_namespaces_is_told_of(context: ToolContext) -> None:
    job = tool_gate.job_as_json(
        ["/usr/bin/true"], {}, own_network=True, port=5000, socket=context.socket_of("tool")
    )
    # Inside a first one, which allows no second.
    script = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" -I "$1"'
    argv = ["unshare", "--user", "--map-root-user", "sh", "-c", script, sys.executable]
    # At its end it tells its process group to end.
    done = subprocess.run(
        [*argv, tool_gate.__file__],
        input=job,
        capture_output=True,
        timeout=30,
        check=False,
        start_new_session=True,
    )
    assert done.returncode == tool_gate.EXIT_NOT_STARTED
    assert b"Tell the administrators: user namespaces are off there." in done.stdout


def runs(command: str) -> bool:
    found = subprocess.run(
        ["/usr/bin/pgrep", "-f", f"^{command}$"], capture_output=True, check=False
    )
    return found.returncode == 0


def test_what_a_tool_has_started_ends_with_it(context: ToolContext) -> None:
    child = f"sleep {os.getpid()}.25"
    program = context.folder.parent / "server.py"
    script = f"{child} & exec {sys.executable} -I {program} $0"
    settings = WebTool(title="Tool", command=("sh", "-c", script, "{unix_socket}"))

    async def start_and_stop() -> tuple[bool, bool]:
        run = ToolRun("tool", settings, context)
        await run.start()
        before = runs(child)
        await run.stop()
        return before, runs(child)

    assert asyncio.run(start_and_stop()) == (True, False)


def test_a_tool_ends_with_the_session(context: ToolContext) -> None:
    """The process that started it is killed, and tells nobody."""
    command = f"/usr/bin/sleep {os.getpid()}.75"
    job = tool_gate.job_as_json(
        command.split(), {}, own_network=True, port=5000, socket=context.socket_of("tool")
    )
    session = (
        "import subprocess, sys\n"
        "argv = [sys.executable, '-I', sys.argv[1]]\n"
        "gate = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)\n"
        "gate.communicate(sys.argv[2].encode())\n"
    )
    argv = [sys.executable, "-I", "-c", session, tool_gate.__file__, job.decode()]
    with subprocess.Popen(argv) as process:
        until(lambda: runs(command), seconds=20, what="it runs")
        process.kill()
    until(lambda: not runs(command), seconds=20, what="the tool has ended")


def test_a_program_on_a_mount_that_does_not_answer_holds_up_nobody(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def which(*_: object, **__: object) -> None:
        assert threading.current_thread() is not threading.main_thread()
        release.wait(30)

    monkeypatch.setattr(shutil, "which", which)
    monkeypatch.setattr(tool_run, "_ANSWER_SECONDS", 0.1)
    settings = server(context, "{unix_socket}", start_timeout_seconds=1)

    async def use() -> None:
        # The threads that everybody shares are few.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        run = ToolRun("tool", settings, context)
        assert not await asyncio.wait_for(run.can_be_found(), 10)
        with pytest.raises(ToolError, match=words.silent("Server", 1)):
            await run.start()
        await asyncio.wait_for(asyncio.to_thread(int), 10)

    try:
        asyncio.run(use())
    finally:
        release.set()
