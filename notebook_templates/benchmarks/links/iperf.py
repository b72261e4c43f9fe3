"""What iperf3 is told, and what it says: the rate of TCP between two nodes, or to the NAS.

iperf3's server measures with whoever connects. A node's lets nobody in but who knows a password
that was made for this run (iperf3(1), "Authentication"); it listens on one address, for one
measurement. The NAS's is not ours, and asks for none.
"""

import hashlib
import json
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IPERF = "/usr/bin/iperf3"
_OPENSSL = "/usr/bin/openssl"
_USER = "measuring"
_SECONDS = 60
_CONNECT_MS = 10_000


class IperfError(RuntimeError):
    """iperf3 could not do it; the message is what it said."""


@dataclass(frozen=True)
class Keys:
    """By what a server knows its client; the files are in a folder of the user's, 0700."""

    folder: Path
    password: str

    @property
    def private(self) -> str:
        """The server's key."""
        return str(self.folder / "private.pem")

    @property
    def public(self) -> str:
        """What the client seals its password with."""
        return str(self.folder / "public.pem")

    @property
    def users(self) -> str:
        """The one user of the server."""
        return str(self.folder / "users.csv")

    @property
    def variables(self) -> dict[str, str]:
        """What the client takes the password from; not its command line, which all can see."""
        return {"IPERF3_PASSWORD": self.password}


def new_keys(folder: Path) -> Keys:
    """Make a key and a password for one run. Raises `IperfError`."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    keys = Keys(folder, secrets.token_hex(16))
    make = [_OPENSSL, "genrsa", "-out", keys.private, "2048"]
    publish = [_OPENSSL, "rsa", "-in", keys.private, "-pubout", "-out", keys.public]
    try:
        for argv in (make, publish):
            subprocess.run(argv, capture_output=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise IperfError(f"openssl cannot make a key for iperf3: {error}") from error
    digest = hashlib.sha256(f"{{{_USER}}}{keys.password}".encode()).hexdigest()
    Path(keys.users).write_text(f"{_USER},{digest}\n")
    return keys


def server(keys_folder: Path, address: str, port: int) -> list[str]:
    """Return the command that waits for one measurement."""
    keys = Keys(keys_folder, "")
    return [
        IPERF,
        "--server",
        "--one-off",
        "--forceflush",
        f"--bind={address}",
        f"--port={port}",
        f"--rsa-private-key-path={keys.private}",
        f"--authorized-users-path={keys.users}",
    ]


def client(
    address: str, port: int, seconds: int, omit: int, streams: int = 1, keys: Keys | None = None
) -> list[str]:
    """Return the command that measures the connections of one process to a server.

    ``omit``: seconds before those that count; TCP begins slowly. ``keys``: of a server that asks
    for them.
    """
    login = [f"--username={_USER}", f"--rsa-public-key-path={keys.public}"] if keys else []
    return [
        IPERF,
        f"--client={address}",
        f"--port={port}",
        "--json",
        f"--time={seconds}",
        f"--omit={omit}",
        f"--parallel={streams}",
        f"--connect-timeout={_CONNECT_MS}",
        *login,
    ]


def figures(text: str) -> dict[str, float]:
    """Read a client's report: what arrived at the other end. Raises `IperfError`."""
    try:
        report: Mapping[str, Any] = json.loads(text)
    except ValueError as error:
        raise IperfError(f"iperf3 gave no report: {text[:500]}") from error
    if "error" in report:
        raise IperfError(f"iperf3: {report['error']}")
    end = report["end"]
    rate = end["sum_received"]["bits_per_second"]
    if not rate:
        raise IperfError("iperf3: nothing arrived")
    return {
        "gbit_per_second": rate / 1e9,
        "mb_per_second": rate / 8e6,
        "retransmits": end["sum_sent"].get("retransmits", 0),
    }


def together(connections: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Add up the figures of connections that were measured at the same time."""
    return {name: sum(one[name] for one in connections) for name in connections[0]}
