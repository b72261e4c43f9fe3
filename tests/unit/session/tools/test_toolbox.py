"""The tools of a session, and what the browser is shown of one that does not run."""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tornado import web
from tornado.httpclient import AsyncHTTPClient, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
from tornado.netutil import bind_sockets

from dsportal.session.tools import pages as tool_pages
from dsportal.session.tools import words
from dsportal.session.tools.run import ToolContext
from dsportal.session.tools.toolbox import Failure, ManagedTool, Toolbox
from dsportal.session.web import confirmation
from dsportal.session_schema import WebTool
from tests.waiting import until

MODULES = """
module() {
    shift
    case $1 in
        there) ;;
        slow) sleep 60 ;;
        *) echo "The following module(s) are unknown: $1" >&2; return 1 ;;
    esac
    echo "$1" >> "$HOME/asked"
}
"""
SERVER = """
import http.server, socketserver, sys
class Pages(http.server.SimpleHTTPRequestHandler):
    def address_string(self):
        return "somebody"
server = socketserver.UnixStreamServer(sys.argv[1], Pages)
server.serve_forever()
"""
RUNS = WebTool(title="Server", command=(sys.executable, "-I", "-c", SERVER, "{unix_socket}"))
FAILS = WebTool(title="Failing <b>", command=("sh", "-c", "echo '<b>no licence'; exit 3"))


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    (tmp_path / "init").write_text(MODULES)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    return ToolContext(tmp_path, tmp_path, "/user/u/", str(tmp_path / "init"), environment)


def with_tool(
    settings: WebTool, context: ToolContext, use: Callable[[ManagedTool], Awaitable[None]]
) -> None:
    """Use a tool, and stop it."""

    async def use_and_stop() -> None:
        tool = ManagedTool("tool", settings, context)
        try:
            await use(tool)
        finally:
            await tool.stop()

    asyncio.run(use_and_stop())


def test_a_tool_is_started_once_for_all_who_open_it(context: ToolContext) -> None:
    async def use(tool: ManagedTool) -> None:
        assert tool.state == "stopped"
        first = tool.start()
        assert tool.state == "starting"
        assert tool.start() is first
        await first
        assert tool.state == "running"
        assert tool.start() is first

    with_tool(RUNS, context, use)


def test_a_stopped_tool_can_be_started_again(context: ToolContext) -> None:
    async def use(tool: ManagedTool) -> None:
        await tool.start()
        await tool.stop()
        assert tool.state == "stopped"
        assert await tool.take_failure() is None
        await tool.start()
        assert tool.state == "running"

    with_tool(RUNS, context, use)


async def open_while_it_ends(tool: ManagedTool, after: float) -> None:
    """Start it, and again so many seconds after its stop was asked for."""
    await tool.start()
    stopping = asyncio.create_task(tool.stop())
    await asyncio.sleep(after)
    await tool.start()
    await stopping
    assert tool.state == "running"


def test_a_tool_that_ends_slowly_is_started_again_meanwhile(context: ToolContext) -> None:
    slow = f"trap 'sleep 1; exit' TERM; {sys.executable} -I -c '{SERVER}' $0 & wait"
    settings = WebTool(title="Slow", command=("bash", "-c", slow, "{unix_socket}"))

    async def use(tool: ManagedTool) -> None:
        await open_while_it_ends(tool, after=0.1)
        assert context.socket_of("tool").exists()

    with_tool(settings, context, use)


def test_a_tool_is_stopped_while_it_starts(context: ToolContext) -> None:
    async def use(tool: ManagedTool) -> None:
        tool.start()
        await asyncio.sleep(0)
        await tool.stop()
        assert tool.state == "stopped"
        failure = Failure(words.stopped_while_starting("Sleeper"), "")
        opened = asyncio.create_task(tool_pages.started(tool))
        await asyncio.sleep(0)
        await tool.stop()
        assert await opened == failure

    with_tool(WebTool(title="Sleeper", command=("sleep", "60")), context, use)


def test_a_failure_is_told_once_and_then_it_is_tried_again(context: ToolContext) -> None:
    async def use(tool: ManagedTool) -> None:
        failure = Failure(words.ended("Failing <b>", 3), "<b>no licence")
        assert await tool_pages.started(tool) == failure
        assert await tool.take_failure() is None
        assert await tool_pages.started(tool) == failure

    with_tool(FAILS, context, use)


def test_a_tool_that_ends_later_is_a_failure_too(context: ToolContext) -> None:
    def end_it(tool: ManagedTool) -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(context.socket_of("tool")))
            connection.sendall(b"GET /end HTTP/1.0\r\n\r\n")
        until(lambda: tool.state == "stopped", seconds=20, what="the tool has ended")

    async def use(tool: ManagedTool) -> None:
        await tool.start()
        await asyncio.to_thread(end_it, tool)
        failure = await tool.take_failure()
        assert failure is not None
        assert failure.words == words.ended("Server", 4)

    # Two requests: that of the start, and the one from above.
    twice = "server.handle_request()\nserver.handle_request()\nsys.exit(4)\n"
    code = SERVER.replace("server.serve_forever()", twice)
    command = (sys.executable, "-I", "-c", code, "{unix_socket}")
    with_tool(replace(RUNS, command=command), context, use)


class Pages(web.RequestHandler):
    """In the place of what leads to the tool."""

    base_url = "/user/u/"

    async def prepare(self) -> None:
        """Let everybody in."""

    def get(self) -> None:
        self.finish("the tool's own page")


async def visited(
    tool: ManagedTool, note_use: Callable[[], None] = lambda: None, **headers: str
) -> HTTPResponse:
    """Ask for a tool's page as a browser does, or else with other headers."""
    handler = tool_pages.starting(Pages, tool, note_use)
    server = HTTPServer(web.Application([("/", handler)]))
    (listener,) = bind_sockets(0, "127.0.0.1")
    server.add_socket(listener)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    try:
        own = {"Accept": "text/html", "Sec-Fetch-Site": "none"}
        asked = own | {name.replace("_", "-"): text for name, text in headers.items()}
        return await AsyncHTTPClient().fetch(url, headers=asked, raise_error=False)
    finally:
        server.stop()


def test_who_waits_long_is_shown_that_it_starts(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_pages, "_PATIENCE_SECONDS", 2.0)

    async def use(tool: ManagedTool) -> None:
        answer = await visited(tool)
        assert tool.state == "starting"
        assert (answer.code, answer.headers["Refresh"]) == (202, "1")
        assert b"<h1>Sleeper is starting</h1>" in answer.body
        assert b"a word</pre>" in answer.body

    command = ("sh", "-c", "echo a word; exec sleep 60")
    with_tool(WebTool(title="Sleeper", command=command), context, use)


def test_who_opens_a_tool_starts_it_and_sees_its_page(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_pages, "_PATIENCE_SECONDS", 30.0)

    async def use(tool: ManagedTool) -> None:
        assert (await visited(tool, Accept="*/*")).code == 503
        assert tool.state == "stopped"
        assert (await visited(tool)).body == b"the tool's own page"
        assert tool.state == "running"
        assert (await visited(tool, Accept="*/*")).body == b"the tool's own page"

    with_tool(RUNS, context, use)


def test_who_comes_by_a_link_of_another_page_is_asked_first(context: ToolContext) -> None:
    uses = []

    async def use(tool: ManagedTool) -> None:
        for site in ("cross-site", "same-site"):
            answer = await visited(tool, lambda: uses.append("asked"), Sec_Fetch_Site=site)
            assert (answer.code, tool.state) == (200, "stopped")
            assert b'action="/user/u/portal/tools/tool/start"' in answer.body
            assert b'name="_xsrf" value="' in answer.body
        await tool.start()
        answer = await visited(tool, lambda: uses.append("running"), Sec_Fetch_Site="cross-site")
        assert answer.body == b"the tool's own page"

    with_tool(RUNS, context, use)
    # Nor is it a sign that somebody works.
    assert uses == []


def test_a_failure_has_a_page_that_stays(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_pages, "_PATIENCE_SECONDS", 30.0)

    async def use(tool: ManagedTool) -> None:
        answer = await visited(tool)
        assert (answer.code, answer.headers.get("Refresh")) == (502, None)
        assert b"with exit code 3" in answer.body

    with_tool(FAILS, context, use)


def test_the_page_of_a_failure_has_its_words_and_a_way_on(context: ToolContext) -> None:
    page = tool_pages.page(
        ManagedTool("tool", FAILS, context), Failure("No <b>luck.", "<b>no licence")
    )
    assert "<h1>Failing &lt;b&gt; is not running</h1>" in page
    assert "No &lt;b&gt;luck." in page
    assert "&lt;b&gt;no licence</pre>" in page
    assert '<a href="/user/u/tools/tool/">Try Again</a>' in page


def test_a_card_is_there_where_the_modules_or_the_program_are(context: ToolContext) -> None:
    tools = {
        "no-modules": RUNS,
        "there": replace(RUNS, modules=("there",), title="There"),
        "missing": replace(RUNS, modules=("missing",)),
        "nowhere": replace(RUNS, command=("/nowhere/program",)),
        "in-home": replace(RUNS, command=("~/program",), title="In home"),
        "on-own-path": replace(
            RUNS, command=("program",), environment={"PATH": "~"}, title="On own path"
        ),
    }
    (context.home / "program").touch(0o755)
    toolbox = Toolbox(tools, context)
    asyncio.run(toolbox.cards())
    cards = asyncio.run(toolbox.cards())
    assert [(card["name"], card["title"]) for card in cards] == [
        ("no-modules", "Server"),
        ("there", "There"),
        ("in-home", "In home"),
        ("on-own-path", "On own path"),
    ]
    # Not at every look.
    assert (context.home / "asked").read_text() == "there\n"


@pytest.mark.parametrize(
    ("listens", "has_own_network", "is_open"),
    [("unix_socket", False, False), ("port", True, False), ("port", False, True)],
)
def test_a_card_says_that_others_reach_the_port(
    context: ToolContext, listens: str, has_own_network: bool, is_open: bool
) -> None:
    settings = replace(RUNS, listens=listens, has_own_network=has_own_network)
    (card,) = asyncio.run(Toolbox({"tool": settings}, context).cards())
    assert card["is_open_to_node"] is is_open


def test_a_card_has_the_sites_picture_or_ours(context: ToolContext, tmp_path: Path) -> None:
    site = tmp_path / "site.svg"
    site.write_text("<svg>of the site</svg>")
    assert (
        ManagedTool("t", replace(RUNS, icon=str(site)), context).picture()
        == "<svg>of the site</svg>"
    )
    ours = ManagedTool("t", RUNS, context).picture()
    assert ours.startswith("<svg")
    assert ManagedTool("t", replace(RUNS, icon="/no/such.svg"), context).picture() == ours
    # Those that the deployment has can be told apart.
    known = [ManagedTool(name, RUNS, context).picture() for name in ("vscode", "mlflow", "digits")]
    assert len({ours, *known}) == 4
    assert all(picture.startswith("<svg") for picture in known)


@pytest.mark.parametrize(
    ("method", "headers", "is_visit"),
    [
        ("GET", {"Accept": "text/html,*/*;q=0.8"}, True),
        ("GET", {"Sec-Fetch-Mode": "navigate"}, True),
        ("GET", {"Sec-Fetch-Mode": "cors", "Accept": "text/html"}, False),
        ("GET", {"Accept": "*/*"}, False),
        ("GET", {}, False),
        ("POST", {"Sec-Fetch-Mode": "navigate", "Accept": "text/html"}, False),
    ],
)
def test_only_who_opens_a_page_starts_a_tool(
    method: str, headers: dict[str, str], is_visit: bool
) -> None:
    line = RequestStartLine(method, "/", "HTTP/1.1")
    request = HTTPServerRequest(start_line=line, headers=HTTPHeaders({"Host": "hub", **headers}))
    assert confirmation.is_visit(request) is is_visit


# As uvicorn's, its socket goes with it.
LEAVES_SLOWLY = """
import os, signal, time
def leave(*_):
    time.sleep(1)
    if os.path.exists(sys.argv[1]):
        os.unlink(sys.argv[1])
    os._exit(0)
signal.signal(signal.SIGTERM, leave)
"""


def test_a_tool_that_is_opened_while_it_ends_keeps_its_socket(context: ToolContext) -> None:
    first, rest = SERVER.strip().split("\n", 1)
    program = f"{first}{LEAVES_SLOWLY}{rest}"
    settings = replace(RUNS, command=(sys.executable, "-I", "-c", program, "{unix_socket}"))

    async def use(tool: ManagedTool) -> None:
        await open_while_it_ends(tool, after=0)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(context.socket_of("tool")))

    with_tool(settings, context, use)
