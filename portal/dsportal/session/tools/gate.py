"""The wrapper of a web tool's process: lets the session's server in at a Unix socket.

A program of its own, with the standard library only: ``python -I gate.py``, a `GateJob` as JSON
on standard input. It ends when its tool or its parent does.

A port of localhost is open to every user of the node. So a tool can run in a network namespace
without anything else in it, which the kernel gives an ordinary user along with a user namespace
(user_namespaces(7), network_namespaces(7)). Unix sockets that have a path lead out of it, ports do
not. In the node's own network, at least nobody else's program is taken for the tool.
"""

import asyncio
import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

EXIT_NOT_STARTED = 125
"""The tool did not start; the output's last line says why. As env(1) and others have it."""

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000  # linux/sched.h
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1  # linux/sockios.h, linux/if.h
_LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp
_TABLES = Path("/proc/self/net")
_CHUNK_BYTES = 65536
_STOP_SECONDS = 5.0


class GateError(Exception):
    """The tool cannot be started; the message is for the user."""


@dataclass(frozen=True)
class GateJob:
    """Command, environment and addresses of the tool to run."""

    command: list[str]
    environment: dict[str, str]
    own_network: bool
    port: int | None
    """The tool's; ``None``: the tool listens on a socket by itself."""
    socket: str
    """Where this program listens for the tool's port."""


def main() -> int:
    """Run the tool; gives its exit code."""
    job = GateJob(**json.load(sys.stdin))
    _end_with_parent()
    try:
        if job.own_network:
            enter_own_network()
        return asyncio.run(run(job))
    except GateError as error:
        print(error, flush=True)  # noqa: T201 - its output is what the session shows
        return EXIT_NOT_STARTED


def _end_with_parent() -> None:
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent or parent == 1:
        sys.exit(EXIT_NOT_STARTED)


def enter_own_network() -> None:
    """Leave the node's network for one of this process's and its children's own.

    Raises `GateError` where the node does not let ordinary users do so.
    """
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise GateError(
            f"This tool needs its own network namespace, which {os.uname().nodename} does not "
            f"allow users (unshare: {reason}). Tell the administrators: user namespaces are off "
            "there."
        )
    try:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
        _raise_loopback()
    except OSError as error:
        raise GateError(
            f"The tool's network namespace on {os.uname().nodename} cannot be set up: {error}. "
            "Tell the administrators: user namespaces do not work there."
        ) from error


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh22x", b"lo", 0)
        (flags,) = struct.unpack_from("16xh", fcntl.ioctl(control, _SIOCGIFFLAGS, request))
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))


async def run(job: GateJob) -> int:
    """Start the tool and serve its port until it ends, or this program is told to end."""
    gate = None if job.port is None else await _open_gate(Path(job.socket), job.port)
    try:
        process = await asyncio.create_subprocess_exec(
            *job.command, env=job.environment, stdin=asyncio.subprocess.DEVNULL
        )
    except OSError as error:
        raise GateError(f"{job.command[0]} cannot be run: {error.strerror}.") from error
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    ends = {asyncio.create_task(process.wait()), asyncio.create_task(told.wait())}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if gate is not None:
        gate.close()
    await _end(process)
    # A signal's number is below zero there; a shell would say 128 and more.
    code = process.returncode or 0
    return code if code >= 0 else 128 - code


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the tool and what it has started: all of this program's group but itself."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    if process.returncode is None:
        process.kill()
        await process.wait()


async def _open_gate(path: Path, port: int) -> asyncio.Server:
    previous = os.umask(0o177)
    try:
        return await asyncio.start_unix_server(lambda *ends: _let_in(port, *ends), path)
    finally:
        os.umask(previous)


async def _let_in(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    found = await _connected(port)
    if found is None:
        writer.close()
        return
    tool_reader, tool_writer = found
    try:
        await asyncio.gather(_hand_on(reader, tool_writer), _hand_on(tool_reader, writer))
    finally:
        tool_writer.close()
        writer.close()


async def _connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    for host in ("127.0.0.1", "::1"):
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError:
            continue
        own_port = writer.get_extra_info("sockname")[1]
        # In this order: when nobody else listens any more, nobody else can accept it either.
        if owners_of_port(port) == {os.getuid()} >= owners_of_connection(port, own_port):
            return reader, writer
        writer.close()
    return None


def owners_of_port(port: int, tables: Path = _TABLES) -> set[int]:
    """Return the users whose programs listen on a port, as the kernel tells (proc_net_tcp)."""
    return {one.owner for one in _sockets(port, tables) if one.state == _LISTENS}


def owners_of_connection(port: int, from_port: int, tables: Path = _TABLES) -> set[int]:
    """Return the users whose programs have accepted a connection from another port of this node.

    Nobody's, as long as it waits to be accepted.
    """
    return {
        one.owner
        for one in _sockets(port, tables)
        if one.state != _LISTENS and one.peer_port == from_port and one.inode != 0
    }


@dataclass(frozen=True)
class _Socket:
    peer_port: int
    state: str
    owner: int
    inode: int
    """0: no program has it."""


def _sockets(port: int, tables: Path) -> Iterator[_Socket]:
    for name in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):  # no IPv6 there
            for line in (tables / name).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                own, peer = (int(field.rpartition(":")[2], 16) for field in fields[1:3])
                if own == port:
                    yield _Socket(peer, fields[3], int(fields[7]), int(fields[9]))


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        # Who has left without hearing the rest hears nothing of the other way either.
        writer.close()


def job_as_json(
    command: list[str],
    environment: Mapping[str, str],
    *,
    own_network: bool,
    port: int | None,
    socket: Path,
) -> bytes:
    """Give what this program reads."""
    job = GateJob(command, dict(environment), own_network, port, str(socket))
    return json.dumps(vars(job)).encode()


if __name__ == "__main__":
    sys.exit(main())
