#!/usr/bin/env python
"""The end of a link that sends: network.py runs it on a node.

Each connection has a process of its own: before version 3.16 iperf3 sends all of them from one
thread, which is too little for links of more than 40 Gbit/s. The last line is JSON: the figures of
all together.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1])]

from links import iperf


def main() -> None:
    """Send to each port at once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=Path, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--omit", type=int, required=True)
    parser.add_argument("address")
    parser.add_argument("ports", type=int, nargs="+")
    asked = parser.parse_args()
    keys = iperf.Keys(asked.keys, os.environ["IPERF3_PASSWORD"])
    clients = [
        subprocess.Popen(
            iperf.client(keys, asked.address, port, asked.seconds, asked.omit),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        for port in asked.ports
    ]
    reports = [client.communicate()[0] for client in clients]
    try:
        found = [iperf.figures(report) for report in reports]
    except iperf.IperfError as error:
        sys.exit(str(error))
    print(json.dumps(iperf.together(found)))


if __name__ == "__main__":
    main()
