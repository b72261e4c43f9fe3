"""What processes listen on, from ``/proc`` (proc(5)), as root sees it."""

import pwd
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from itertools import islice
from pathlib import Path
from typing import Literal

from tests.instance import NUMBER

_TCP_LISTEN = "0A"
_UNIX_ACCEPTS = 0x10000


@dataclass(frozen=True)
class Listener:
    """A socket that others can connect to, or send to."""

    kind: Literal["tcp", "udp", "unix"]
    address: str
    """An IP address; of a unix socket its path, which begins with ``@`` when it is no file."""
    port: int = 0


def of_processes(pids: set[int]) -> list[Listener]:
    """List what any of these processes listens on."""
    inodes = {inode for pid in pids for inode in _sockets_of(pid)}
    found = [*_inet("tcp"), *_inet("tcp6"), *_inet("udp"), *_inet("udp6"), *_unix()]
    return sorted({one for inode, one in found if inode in inodes}, key=str)


def of_job(user: str, number: str) -> list[Listener]:
    """List what the processes in a Slurm job's cgroup (v1) listen on, in the node's network."""
    uid = pwd.getpwnam(user).pw_uid
    found = list(Path("/sys/fs/cgroup/memory").glob(f"slurm*/uid_{uid}/job_{number}"))
    assert found, f"job {number} has no cgroup"
    groups = (group for folder in found for group in folder.rglob("cgroup.procs"))
    return of_processes({int(pid) for group in groups for pid in group.read_text().split()})


def tcp_ports_of_job(user: str, number: str) -> list[int]:
    """List a job's TCP ports, each once, whatever addresses it is open at."""
    return sorted({one.port for one in of_job(user, number) if one.kind == "tcp"})


def _sockets_of(pid: int) -> Iterator[str]:
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            name = str(link.readlink())
            if name.startswith("socket:["):
                yield name.removeprefix("socket:[").removesuffix("]")
    except FileNotFoundError:
        return  # it has ended meanwhile, or has closed it


def _inet(table: str) -> Iterator[tuple[str, Listener]]:
    kind: Literal["tcp", "udp"] = "tcp" if table.startswith("tcp") else "udp"
    for line in Path("/proc/net", table).read_text().splitlines()[1:]:
        fields = line.split()
        if kind == "udp" or fields[3] == _TCP_LISTEN:
            address, port = fields[1].split(":")
            yield fields[9], Listener(kind, _address(address), int(port, 16))


def _address(digits: str) -> str:
    words = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    return str(IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed))


def _unix() -> Iterator[tuple[str, Listener]]:
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split(maxsplit=7)
        # A datagram socket with a name takes messages without listening.
        accepts = int(fields[3], 16) & _UNIX_ACCEPTS or fields[4] == "0002"
        if accepts and len(fields) == 8:
            yield fields[6], Listener("unix", fields[7])


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on now, for servers to be started.

    Not those that the system picks (``net.ipv4.ip_local_port_range``): until the server listens,
    anybody's connection may get one. These belong to the tests of one instance alone: no port of an
    instance (inventories/test) ends with 300 to 799.
    """
    first = 9_300 + 1000 * int(NUMBER)
    ports = random.sample(range(first, first + 500), k=500)
    found = list(islice(filter(_is_free, ports), count))
    assert len(found) == count, f"{len(found)} of the ports from {first} to {first + 499} are free"
    return found


def free_port() -> int:
    """Return one such port."""
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False
