"""A run of a web tool: from loading its modules to its first response, and to its end."""

import asyncio
import codecs
import os
import shutil
import signal
import socket
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from dsportal.session.modules import ModulesError, ModuleSystem
from dsportal.session.threads import in_thread
from dsportal.session.tools import gate as tool_gate
from dsportal.session.tools import words
from dsportal.session_schema import WebTool

_LINES_KEPT = 40
_LONGEST_LINE = 500
_ASK_EVERY_SECONDS = 0.1
_ANSWER_SECONDS = 10.0
_STOP_SECONDS = 8.0
"""Longer than the gate itself waits for its tool."""
_PORT_IN_OWN_NETWORK = 8080
# How to speak to the hub and to the session: no tool's matter.
_NOT_A_TOOLS = ("JUPYTERHUB_", "JUPYTER_", "JPY_")


class ToolError(Exception):
    """A tool does not run; the message is for the user."""


@dataclass(frozen=True)
class ToolContext:
    """Folders, addresses and environment of a session's tools."""

    home: Path
    folder: Path
    """Only the user can enter it: sockets."""
    base_url: str
    """Of the session, as browsers see it."""
    modules_init: str | None
    environment: Mapping[str, str]

    def path_of(self, name: str) -> str:
        """Return the path below which a tool's pages are, without a slash at its end."""
        return f"{self.base_url.rstrip('/')}/tools/{name}"

    def socket_of(self, name: str) -> Path:
        """Return where a tool is reached."""
        return self.folder / f"tool-{name}.sock"


class ToolRun:
    """A tool that starts or runs."""

    def __init__(self, name: str, settings: WebTool, context: ToolContext) -> None:
        self._name = name
        self._settings = settings
        self._context = context
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._has_answered = False

    @property
    def output(self) -> str:
        """The end of what the tool has written."""
        return "\n".join(self._lines)

    @property
    def is_running(self) -> bool:
        """Whether the tool has answered, and has not ended since."""
        return self._has_answered and self.exit_code is None

    @property
    def exit_code(self) -> int | None:
        """How the tool ended; ``None`` before it does."""
        return self._process.returncode if self._process else None

    async def start(self) -> None:
        """Start the tool and wait until it answers; raises `ToolError`."""
        try:
            async with asyncio.timeout(self._settings.start_timeout_seconds):
                await self._begin()
                await self._answer()
        except TimeoutError as error:
            await self.stop()
            silence = words.silent(self._settings.title, self._settings.start_timeout_seconds)
            raise ToolError(silence) from error
        except BaseException:
            await self.stop()
            raise
        self._has_answered = True

    async def can_be_found(self) -> bool:
        """Whether the program of a tool is there that has not been started."""
        try:
            given = await self._environment(None)
            program = self._filled(self._settings.command[0], None)
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._found(program, given)
        except (ToolError, TimeoutError):
            return False
        return True

    async def stop(self) -> None:
        """End the tool, and all that it has started."""
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        self._context.socket_of(self._name).unlink(missing_ok=True)

    # --- the start's steps ---

    async def _begin(self) -> None:
        port = self._port()
        given = await self._environment(port)
        command = [self._filled(word, port) for word in self._settings.command]
        job = tool_gate.job_as_json(
            [await self._found(command[0], given), *command[1:]],
            given,
            own_network=self._settings.has_own_network,
            port=port,
            socket=self._context.socket_of(self._name),
        )
        self._context.socket_of(self._name).unlink(missing_ok=True)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            tool_gate.__file__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self._context.home,
            env=dict(self._context.environment),
            start_new_session=True,
        )
        written = cast(asyncio.StreamReader, self._process.stdout)
        self._reading = asyncio.create_task(self._read(written))
        into = cast(asyncio.StreamWriter, self._process.stdin)  # a pipe, as asked for above
        into.write(job)
        into.close()

    def _port(self) -> int | None:
        if self._settings.listens != "port":
            return None
        if self._settings.port is not None:
            return self._settings.port
        if self._settings.has_own_network:
            return _PORT_IN_OWN_NETWORK
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return int(free.getsockname()[1])

    async def _environment(self, port: int | None) -> dict[str, str]:
        environment = {
            name: text
            for name, text in self._context.environment.items()
            if not name.startswith(_NOT_A_TOOLS)
        }
        if self._settings.modules:
            try:
                system = ModuleSystem(self._context.modules_init or "")
                environment = await system.loaded(self._settings.modules, environment)
            except ModulesError as error:
                raise ToolError(str(error)) from error
        # Where programs put sockets that are for the user alone: VS Code takes orders at some.
        environment["XDG_RUNTIME_DIR"] = str(self._context.folder)
        own = self._settings.environment.items()
        return environment | {name: self._filled(text, port) for name, text in own}

    def _filled(self, text: str, port: int | None) -> str:
        """Put into a setting what is known here only."""
        if text == "~" or text.startswith("~/"):
            text = f"{self._context.home}{text[1:]}"
        for name, value in (
            ("{unix_socket}", str(self._context.socket_of(self._name))),
            ("{port}", str(port)),
            ("{base_url}", self._context.path_of(self._name)),
        ):
            text = text.replace(name, value)
        return text

    async def _found(self, program: str, environment: Mapping[str, str]) -> str:
        # It may be on a mount that does not answer.
        look = partial(shutil.which, program, path=environment.get("PATH", ""))
        path = await in_thread(look)
        if path is None:
            raise ToolError(
                words.no_program(self._settings.title, program, *self._settings.modules)
            )
        return path

    async def _answer(self) -> None:
        while not await self._answers():
            if self.exit_code is not None:
                raise ToolError(await self.last_words())
            await asyncio.sleep(_ASK_EVERY_SECONDS)

    async def _answers(self) -> bool:
        """Ask for a page as a browser would; any answer will do."""
        path = f"{self._context.path_of(self._name)}/" if self._settings.absolute_url else "/"
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        try:
            reader, writer = await asyncio.open_unix_connection(self._context.socket_of(self._name))
        except OSError:
            return False
        try:
            writer.write(request.encode())
            async with asyncio.timeout(_ANSWER_SECONDS):
                return (await reader.read(5)).startswith(b"HTTP")
        except (OSError, TimeoutError):
            return False
        finally:
            writer.close()

    async def last_words(self) -> str:
        """Say that the tool has ended, and how."""
        if self._reading is not None:
            # Something that the tool has left behind may hold its output open.
            await asyncio.wait({self._reading}, timeout=1.0)
        if self.exit_code == tool_gate.EXIT_NOT_STARTED and self._lines:
            return self._lines.pop()
        return words.ended(self._settings.title, self.exit_code)

    async def _read(self, written: asyncio.StreamReader) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""
        while data := await written.read(4096):
            *lines, rest = (rest + decoder.decode(data)).split("\n")
            rest = rest[-_LONGEST_LINE:]
            self._lines.extend(line[-_LONGEST_LINE:].rstrip("\r") for line in lines)
        if rest:
            self._lines.append(rest)
