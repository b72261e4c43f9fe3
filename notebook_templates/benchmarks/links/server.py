#!/usr/bin/env python
"""The end of a link that waits: network.py starts it on a node, and ends it.

It prints the address and the ports on which iperf3 listens, once it does: one for each connection.
"""

import argparse
import ipaddress
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).resolve().parents[1])]

from links import iperf

_IP = "/usr/sbin/ip"
_TRIES = 5
_SECONDS = 10
_DISCARD_PORT = 9


def address_in(network: str, interfaces: Sequence[Mapping[str, Any]]) -> str | None:
    """Return this host's address in a network; ``interfaces``: what ``ip -json address`` says."""
    wanted = ipaddress.ip_network(network)
    for interface in interfaces:
        for one in interface.get("addr_info", ()):
            if ipaddress.ip_address(one["local"]) in wanted:
                return str(one["local"])
    return None


def own_address(network: str) -> str:
    """Return the address to listen on: in the chosen network, else that by which Slurm comes."""
    if network:
        printed = subprocess.run(
            [_IP, "-json", "address"], capture_output=True, text=True, timeout=_SECONDS, check=True
        ).stdout
        found = address_in(network, json.loads(printed))
        if found is None:
            sys.exit(f"{socket.gethostname()} has no address in {network}")
        return found
    # A datagram socket that is connected sends nothing, but has chosen its address.
    towards = os.environ.get("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1")
    family = socket.AF_INET6 if ":" in towards else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        one.connect((towards, _DISCARD_PORT))
        return str(one.getsockname()[0])


def free_port(address: str) -> int:
    """Return a port on which nobody listens; somebody may before iperf3 does."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as one:
        one.bind((address, 0))
        return int(one.getsockname()[1])


def listening(keys: Path, address: str) -> tuple["subprocess.Popen[str]", int]:
    """Start an iperf3 for one measurement; return it with its port, once it listens."""
    said = ""
    for _ in range(_TRIES):
        port = free_port(address)
        process = subprocess.Popen(
            iperf.server(keys, address, port),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout
        for line in process.stdout:
            said += line
            if "Server listening" in line:
                return process, port
        process.wait()
    sys.exit(f"iperf3 cannot listen on {address}: {said}")


def main() -> None:
    """Listen once for each connection."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=Path, required=True)
    parser.add_argument("--network", default="")
    parser.add_argument("--streams", type=int, default=1)
    asked = parser.parse_args()
    address = own_address(asked.network)
    servers = [listening(asked.keys, address) for _ in range(asked.streams)]
    print(address, *(port for _, port in servers), flush=True)
    for process, _ in servers:
        process.communicate()


if __name__ == "__main__":
    main()
