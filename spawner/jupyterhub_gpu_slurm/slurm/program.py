"""Runs one program with limits on its time and on the size of its output."""

import asyncio
import contextlib
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from jupyterhub_gpu_slurm.errors import CommandFailed, CommandTimedOut, UnreadableOutput

_AT_ONCE = 1 << 16
_END_SECONDS = 1.0


@dataclass(frozen=True)
class Outcome:
    """Exit status and output of a program."""

    code: int
    out: str
    err: str


async def run(
    argv: Sequence[str], environment: Mapping[str, str], seconds: float, most_bytes: int
) -> Outcome:
    """Run a program that is told nothing.

    Raises `CommandFailed` where it cannot be run, `CommandTimedOut`, and `UnreadableOutput` for
    more than ``most_bytes`` on one of its streams.
    """
    async with started(argv, environment) as process, in_time(name_of(argv), seconds):
        return await said(process, name_of(argv), most_bytes)


@asynccontextmanager
async def started(argv: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Process]:
    """Start a program with pipes; it is ended, and they are closed, when the block is left."""
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(
        loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(limit=_AT_ONCE, loop=loop),
            *argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(environment),
        )
    )
    try:
        # Cancelled within it, asyncio would signal the program, which may be root's.
        transport, protocol = await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_close)
        raise
    except OSError as error:
        raise CommandFailed(
            f"{name_of(argv)} cannot be run; ask the administrators.", detail=f"{argv[0]}: {error}"
        ) from error
    process = Process(transport, protocol, loop)
    try:
        yield process
    finally:
        _close(starting)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _END_SECONDS)


def _close(starting: "asyncio.Future[tuple[asyncio.SubprocessTransport, Any]]") -> None:
    """End what was started, where it was."""
    if starting.cancelled() or starting.exception() is not None:
        return
    # sudo is root's and cannot be signalled: it, and what it runs, find their pipes closed.
    with contextlib.suppress(PermissionError):
        starting.result()[0].close()


@asynccontextmanager
async def in_time(name: str, seconds: float) -> AsyncIterator[None]:
    """Raise `CommandTimedOut` where the block takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise CommandTimedOut(
            "Slurm is not responding at the moment; try again in a minute.",
            detail=f"{name} did not answer in {seconds:g} s",
        ) from error


async def said(process: Process, name: str, most_bytes: int) -> Outcome:
    """Read what a program says to its end; raises `UnreadableOutput` beyond ``most_bytes``."""
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018  all are pipes
    process.stdin.close()
    streams = (process.stdout, process.stderr)
    out, err = await asyncio.gather(*(_read(stream, name, most_bytes) for stream in streams))
    return Outcome(await process.wait(), out, err)


def name_of(argv: Sequence[str]) -> str:
    """Return the name of the program in an argv."""
    return PurePosixPath(argv[0]).name


async def _read(stream: asyncio.StreamReader, name: str, most_bytes: int) -> str:
    heard = bytearray()
    while chunk := await stream.read(_AT_ONCE):
        heard += chunk
        if len(heard) > most_bytes:
            raise UnreadableOutput(
                "Slurm's output is too long to read; tell the administrators.",
                detail=f"{name} printed more than {most_bytes} bytes",
            )
    return heard.decode(errors="replace")
