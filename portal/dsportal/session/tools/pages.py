"""Routes of the web tools: their list for the launcher, and each one's own pages.

``GET /portal/tools`` lists them, ``DELETE /portal/tools/NAME`` stops one. What is below
``/tools/NAME/`` is the tool's own; opening it starts the tool. Who comes by another page's link is
asked first; the button posts to ``/portal/tools/NAME/start``.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from dsportal.session.tools import words
from dsportal.session.tools.toolbox import Failure, ManagedTool, Toolbox
from dsportal.session.web import proxied
from dsportal.session.web.confirmation import ask, is_from_elsewhere, is_visit
from dsportal.session.web.page_files import page_of

ROUTES = (r"tools/.*",)
"""Below the server's base URL, as regular expressions: what `add_routes` adds."""

_PATIENCE_SECONDS = 2.0
"""Who opens a tool that starts in this time sees no page of ours."""
_MORE_PATIENCE_SECONDS = 5.0
"""Who looks at the page that it starts sees no other one for so long, or until it has started."""
_PAGE = Path(__file__).with_name("page.html.j2")


class ToolsHandler(APIHandler):
    """GET handler of the list of tools."""

    _track_activity = False

    def initialize(self, toolbox: Toolbox) -> None:
        """Take the session's tools."""
        self.toolbox = toolbox

    @web.authenticated
    async def get(self) -> None:
        """Give those that are there, with their pictures."""
        self.finish(json.dumps({"tools": await self.toolbox.cards()}))


class ToolHandler(APIHandler):
    """DELETE handler that stops a tool."""

    def initialize(self, toolbox: Toolbox) -> None:
        """Take the session's tools."""
        self.toolbox = toolbox

    @web.authenticated
    async def delete(self, name: str) -> None:
        """Stop it, and what it has started."""
        tool = self.toolbox.get(name)
        if tool is None:
            raise web.HTTPError(404, words.no_tool(name))
        await tool.stop()
        self.set_status(204)
        self.finish()


class StartHandler(JupyterHandler):
    """Starts a tool for whoever was asked."""

    def initialize(self, toolbox: Toolbox) -> None:
        """Take the session's tools."""
        self.toolbox = toolbox

    @web.authenticated
    async def post(self, name: str) -> None:
        """Begin to start it, and lead to its page."""
        tool = self.toolbox.get(name)
        if tool is None:
            raise web.HTTPError(404, words.no_tool(name))
        tool.start()
        self.redirect(f"{tool.context.path_of(name)}/", status=303)


def routes(base_url: str, toolbox: Toolbox) -> list[tuple[str, type[JupyterHandler], Any]]:
    """Give the routes that are there from the start."""
    given = {"toolbox": toolbox}
    return [
        (url_path_join(base_url, "portal/tools"), ToolsHandler, given),
        (url_path_join(base_url, "portal/tools/([a-z0-9-]+)"), ToolHandler, given),
        (url_path_join(base_url, "portal/tools/([a-z0-9-]+)/start"), StartHandler, given),
    ]


def add_routes(web_app: Any, toolbox: Toolbox, note_use: Callable[[], None]) -> None:
    """Give a running server the tools' own pages. ``note_use``: somebody has opened one."""
    base_url = web_app.settings["base_url"]
    for tool in toolbox:
        path = f"tools/{tool.name}"
        proxy = proxied.handler_to(
            path, tool.context.socket_of(tool.name), absolute_url=tool.settings.absolute_url
        )
        handler = starting(proxy, tool, note_use)
        proxied.add_handlers(web_app, base_url, path, handler)


def starting(proxy: type, tool: ManagedTool, note_use: Callable[[], None]) -> type:
    """Give a proxy's handler that starts its tool when somebody opens it."""

    class StartingProxy(proxy):  # type: ignore[misc]
        async def prepare(self) -> None:
            await super().prepare()
            if self._finished:
                return
            if is_visit(self.request):
                await self._open(is_from_elsewhere(self))
            elif tool.state != "running":
                raise web.HTTPError(503, words.not_running(tool.settings.title))

        async def _open(self, is_by_a_link: bool) -> None:
            if not is_by_a_link:
                note_use()
            if tool.state == "running":
                return
            if tool.state == "stopped" and is_by_a_link:
                start = url_path_join(self.base_url, f"portal/tools/{tool.name}/start")
                title = tool.settings.title
                ask(self, title=f"Start {title}?", label=f"Start {title}", action=start)
                return
            failure = await started(tool)
            if failure is None and tool.state == "running":
                return
            self.set_status(502 if failure else 202)
            if failure is None:
                self.set_header("Refresh", "1")
            self.set_header(
                "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"
            )
            self.set_header("Cache-Control", "no-store")
            self.finish(page(tool, failure))

    return StartingProxy


async def started(tool: ManagedTool) -> Failure | None:
    """Start a tool, and wait a little; return why it does not run, if that is known by then."""
    patience = _MORE_PATIENCE_SECONDS if tool.state == "starting" else _PATIENCE_SECONDS
    failure = await tool.take_failure()
    if failure is None:
        await asyncio.wait({tool.start()}, timeout=patience)
        failure = await tool.take_failure()
    if failure is None and tool.state == "stopped":
        return Failure(words.stopped_while_starting(tool.settings.title), "")
    return failure


def page(tool: ManagedTool, failure: Failure | None) -> str:
    """Say that a tool is starting, or why it does not."""
    return page_of(_PAGE).render(
        title=tool.settings.title,
        url=f"{tool.context.path_of(tool.name)}/",
        failure=failure,
        output=failure.output if failure else tool.output,
    )
