"""Commands that the page has started: ``portal env`` as a subprocess, and its output."""

import asyncio
import codecs
import os
import re
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from dsportal.session.own_environments import words
from dsportal.session.own_environments.making import Order
from dsportal.session.own_environments.records import OwnEnvironmentError

_COMMAND = ("-I", "-m", "dsportal.session.own_environments")
_MOST_CHARACTERS = 20_000
_END_SECONDS = 20.0
# What moves a terminal's cursor or colours its letters.
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

State = Literal["running", "done", "failed"]


@dataclass
class Task:
    """A command, its state and its output."""

    action: str
    name: str
    state: State = "running"
    said: str = ""

    def hear(self, text: str) -> None:
        """Keep what it says, and not more than a page can show."""
        self.said = (self.said + _STEERING.sub("", text))[-_MOST_CHARACTERS:]


class OwnWork:
    """Runs one command at a time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = {**environment, "PYTHONUNBUFFERED": "1"}
        self.task: Task | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._hearing: asyncio.Task[None] | None = None

    async def create(self, order: Order) -> Task:
        """Begin to make one; what is given has been checked. Raises `OwnEnvironmentError`."""
        options = [f"--in={order.folder}", *(f"--on={module}" for module in order.on)]
        options += ["--conda"] if order.conda else []
        return await self._begin(
            "create", order.name, [*options, "--", order.name, *order.packages]
        )

    async def remove(self, name: str) -> Task:
        """Begin to remove one; raises `OwnEnvironmentError`."""
        return await self._begin("remove", name, ["--", name])

    async def stop(self) -> None:
        """Stop what runs, and wait until it has cleared up."""
        if self._process is None or self._hearing is None:
            return
        if self._process.returncode is not None:
            return  # its number may be somebody else's by now
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._hearing), _END_SECONDS)

    async def _begin(self, action: str, name: str, arguments: list[str]) -> Task:
        if self.task is not None and self.task.state == "running":
            raise OwnEnvironmentError(words.IS_BUSY.format(name=self.task.name))
        task = self.task = Task(action, name)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *_COMMAND,
                action,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self.task = None
            raise OwnEnvironmentError(words.NOT_BEGUN.format(reason=error)) from error
        self._hearing = asyncio.create_task(self._hear(task, self._process))
        return task

    async def _hear(self, task: Task, process: asyncio.subprocess.Process) -> None:
        reading = asyncio.create_task(self._read(task, process))
        # Not `wait`: what an installation has left behind may hold its output open, and Python 3.11
        # waits for that, too.
        while process.returncode is None and not reading.done():
            await asyncio.wait({reading}, timeout=0.5)
        await asyncio.wait({reading}, timeout=1.0)
        reading.cancel()
        task.state = "done" if await process.wait() == 0 else "failed"

    async def _read(self, task: Task, process: asyncio.subprocess.Process) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while process.stdout is not None and (heard := await process.stdout.read(4096)):
            task.hear(decoder.decode(heard))
