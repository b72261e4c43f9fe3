"""The web tools of a session: which there are, which run, their start and their stop."""

import asyncio
import base64
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dsportal.session.modules import ModulesError, ModulesSilentError, ModuleSystem
from dsportal.session.threads import in_thread
from dsportal.session.tools import words
from dsportal.session.tools.run import ToolContext, ToolError, ToolRun
from dsportal.session_schema import WebTool

log = logging.getLogger(__name__)

_ASK_AGAIN_SECONDS = 300.0
_PICTURE = Path(__file__).with_name("tool.svg")
_PICTURES = Path(__file__).with_name("icons")
"""Of tools that the deployment names so."""


@dataclass(frozen=True)
class Failure:
    """Reason why a tool does not run."""

    words: str
    output: str
    """The end of what it had written."""


class ManagedTool:
    """A web tool of the session, with at most one run at a time."""

    def __init__(self, name: str, settings: WebTool, context: ToolContext) -> None:
        self.name = name
        self.settings = settings
        self.context = context
        self._run: ToolRun | None = None
        self._starting: asyncio.Task[None] | None = None
        # A program removes its socket as it ends, and could remove the next one's.
        self._changing = asyncio.Lock()
        self._failure: Failure | None = None
        self._is_there = False
        self._ask_again_at = 0.0

    @property
    def state(self) -> str:
        """``stopped``, ``starting`` or ``running``."""
        if self._starting is not None and not self._starting.done():
            return "starting"
        return "running" if self._run is not None and self._run.is_running else "stopped"

    @property
    def output(self) -> str:
        """The end of what it has written since its last start."""
        return self._run.output if self._run else ""

    def start(self) -> asyncio.Task[None]:
        """Start it unless it starts or runs; gives what can be waited for."""
        if self._starting is None or (self._starting.done() and self.state == "stopped"):
            self._starting = asyncio.create_task(self._start())
        return self._starting

    async def stop(self) -> None:
        """Stop it, whether it starts or runs."""
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait({self._starting})
        run, self._run = self._run, None
        self._failure = None
        if run is not None:
            async with self._changing:
                await run.stop()

    async def take_failure(self) -> Failure | None:
        """Return why it does not run, once: whoever asks again wants it to be tried again."""
        run = self._run
        if self._failure is None and self.state == "stopped" and run and run.exit_code:
            self._failure = Failure(await run.last_words(), run.output)
        failure, self._failure = self._failure, None
        if failure is not None:
            self._run = None
        return failure

    async def is_there(self) -> bool:
        """Whether its modules can be loaded or, if it has none, whether its program is there.

        Asked again after a while, until it is.
        """
        if not self._is_there and time.monotonic() >= self._ask_again_at:
            run = ToolRun(self.name, self.settings, self.context)
            self._is_there = await (
                self._can_be_loaded() if self.settings.modules else run.can_be_found()
            )
            self._ask_again_at = time.monotonic() + _ASK_AGAIN_SECONDS
        return self._is_there

    def picture(self) -> str:
        """Return the card's picture, an SVG."""
        if self.settings.icon:
            try:
                return Path(self.settings.icon).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                log.warning("No picture for the tool %s: %s", self.name, error)
        own = _PICTURES / f"{self.name}.svg"
        return (own if own.is_file() else _PICTURE).read_text(encoding="utf-8")

    async def _start(self) -> None:
        self._failure = None
        run = self._run = ToolRun(self.name, self.settings, self.context)
        try:
            async with self._changing:
                await run.start()
        except ToolError as error:
            log.warning("The tool %s does not start: %s", self.name, error)
            self._failure = Failure(str(error), run.output)
        except Exception:  # whoever asked for it is told, and the session goes on
            log.exception("The tool %s does not start", self.name)
            self._failure = Failure(words.not_started(self.settings.title), run.output)
        else:
            network = "its own network" if self.settings.has_own_network else "the node's network"
            log.info("The tool %s runs, in %s", self.name, network)

    async def _can_be_loaded(self) -> bool:
        system = ModuleSystem(self.context.modules_init or "")
        try:
            await system.loaded(self.settings.modules, self.context.environment)
        except ModulesSilentError as error:
            log.warning("Whether there is the tool %s is not known: %s", self.name, error)
        except ModulesError as error:
            log.warning("The tool %s is not offered: %s", self.name, error)
            return False
        return True


class Toolbox:
    """All tools of the session."""

    def __init__(self, tools: Mapping[str, WebTool], context: ToolContext) -> None:
        self._tools = {
            name: ManagedTool(name, settings, context) for name, settings in tools.items()
        }

    def __iter__(self) -> Any:
        return iter(self._tools.values())

    def get(self, name: str) -> ManagedTool | None:
        """Return a tool by its name."""
        return self._tools.get(name)

    async def cards(self) -> list[dict[str, Any]]:
        """Describe the tools that are there to the launcher."""
        # One after the other: a session may have one core, and its page is just loading.
        there = [tool for tool in self if await tool.is_there()]
        return [await in_thread(partial(_card, tool)) for tool in there]


def _card(tool: ManagedTool) -> dict[str, Any]:
    picture = base64.b64encode(tool.picture().encode()).decode()
    return {
        "name": tool.name,
        "title": tool.settings.title,
        "picture": f"data:image/svg+xml;base64,{picture}",
        "state": tool.state,
        "is_open_to_node": tool.settings.listens == "port" and not tool.settings.has_own_network,
    }
