#!/usr/bin/env python
"""The end of a link that sends: network.py runs it on a node.

Each port has a process of its own: before version 3.16 iperf3 sends all of a process's connections
from one thread, which is too little for links of more than 40 Gbit/s. A node therefore listens on a
port for each connection; the NAS does on one for all. The last line is JSON: the figures of all
together, or the error.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1])]

from links import iperf


def main() -> None:
    """Send to each port at once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=Path, help="of a server that asks for them")
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--omit", type=int, required=True)
    parser.add_argument("--streams", type=int, default=1, help="connections to each port")
    parser.add_argument("address")
    parser.add_argument("ports", type=int, nargs="+")
    asked = parser.parse_args()
    keys = iperf.Keys(asked.keys, os.environ["IPERF3_PASSWORD"]) if asked.keys else None
    how = (asked.seconds, asked.omit, asked.streams, keys)
    clients = [
        subprocess.Popen(
            iperf.client(asked.address, port, *how),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        for port in asked.ports
    ]
    reports = [client.communicate()[0] for client in clients]
    try:
        found: Mapping[str, object] = iperf.together([iperf.figures(report) for report in reports])
    except iperf.IperfError as error:
        found = {"error": str(error)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
