#!/usr/bin/env python
"""Measure the network alone with iperf3: the rate of TCP between a job's nodes, and to the NAS.

    sbatch --nodes=4 --wrap 'python3 network.py --results run1'
    sbatch --nodes=4 --wrap 'python3 network.py --results run2 --nas-addresses 10.1.0.9,10.1.0.10'

One node waits, or an address of the NAS, and another node sends; nothing else of this run is on the
links then. In RESULTS stay summary.json, and error.txt when it failed.
"""

import argparse
import ipaddress
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from links import iperf, nas
from links.iperf import IperfError, Keys
from links.nas import NasAddress, NasServerError
from measurement import machine, repeats, steps
from measurement.choices import SettingError, whole
from measurement.interruption import Interrupted, stop_in_order
from measurement.result import Result, ResultError
from measurement.sampling import NodeSampler, thinned
from measurement.site_program import SiteProgramError
from measurement.steps import StepError

# record.py, which says why a program ended, is beside this folder.
sys.path += [str(Path(__file__).resolve().parent.parent / "distributed")]
from record import run

SERVER, SENDER = (Path(iperf.__file__).with_name(name) for name in ("server.py", "sender.py"))
_SECONDS = 60
_TRIES = 3
_NAS_SECONDS = 10
"""How long a server of the NAS's is waited for that begins, or is busy."""
PAIRS = ("all", "ring", "none")


@dataclass(frozen=True)
class Link:
    """From which node to which, or to which address of the NAS, and how."""

    sender: str
    receiver: str
    streams: int
    run: int
    nas: NasAddress | None = None

    @property
    def name(self) -> str:
        """What it is called in the results."""
        return f"{self.sender} to {self.receiver}, {self.streams} streams, run {self.run}"


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0] if __doc__ else "",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--results", required=True, help="folder for the results; one that all nodes see")
    add("--nodes", default="", help="names, separated by commas; empty: all of the job")
    add(
        "--pairs",
        default="all",
        choices=PAIRS,
        help="all in both directions, each to the next, or none",
    )
    add("--streams", default="1,4", help="separated by commas: connections at once")
    add("--seconds", type=int, default=10, help="length of each measurement")
    add("--omit", type=int, default=2, help="seconds before it that do not count")
    add("--repeats", type=int, default=3, help="of each link")
    add("--network", default="", help="network to measure, such as 10.1.0.0/16; empty: Slurm's")
    add(
        "--nas-addresses",
        default="",
        help="addresses or names of the NAS, separated by commas, each with :PORT if iperf3 does "
        f"not listen on {nas.PORT} there; empty: the NAS is not measured",
    )
    add("--nas-server", default="", help=nas.SERVER_HELP)
    return parser.parse_args()


def pairs(nodes: Sequence[str], kind: str) -> list[tuple[str, str]]:
    """Return who sends to whom.

    >>> pairs(["a", "b", "c"], "ring")
    [('a', 'b'), ('b', 'c'), ('c', 'a')]
    """
    if kind == "none" or len(nodes) < 2:
        return []
    if kind == "ring":
        return list(zip(nodes, [*nodes[1:], nodes[0]], strict=True))
    return list(itertools.permutations(nodes, 2))


def nodes_of(asked: str, of_job: Sequence[str], least: int = 2) -> list[str]:
    """Return the nodes to measure between, or from; raises `SettingError`."""
    chosen = [name for name in asked.split(",") if name] or list(of_job)
    if strange := sorted(set(chosen) - set(of_job)):
        raise SettingError(
            f"nodes names {strange[0]}, but the job has {', '.join(of_job) or 'none'}"
        )
    if len(set(chosen)) < max(least, len(chosen)):
        raise SettingError(
            f"two nodes are needed, or one and nas_addresses, but there is only "
            f"{', '.join(chosen) or 'none'}: submit it to Slurm with more nodes"
        )
    return chosen


def nodes_of_job() -> list[str]:
    """Return the names of the job's nodes; none without a job."""
    if not steps.nodes().in_job:
        return []
    listed = os.environ["SLURM_JOB_NODELIST"]
    return steps.run(["scontrol", "show", "hostnames", listed], _SECONDS).split()


def links(
    s: argparse.Namespace, nodes: Sequence[str], of_nas: Sequence[NasAddress] = ()
) -> list[Link]:
    """Return all that is measured, in its order; raises `SettingError`.

    The NAS is first: if no server listens there, that shows at once.
    """
    whole("seconds", s.seconds)
    try:
        streams = [int(one) for one in s.streams.split(",")]
        ipaddress.ip_network(s.network or "::")
    except ValueError as error:
        raise SettingError(f"streams or network: {error}") from error
    if min(streams) < 1 or max(streams) > 128:
        raise SettingError(f"streams is {s.streams}; it must be from 1 to 128")
    if s.nas_server and not of_nas:
        raise SettingError(f"nas_server is {s.nas_server!r}, and nas_addresses is empty")
    ends: list[tuple[str, str, NasAddress | None]] = [
        (node, at.name, at) for at in of_nas for node in nodes
    ]
    ends += [(sender, receiver, None) for sender, receiver in pairs(nodes, s.pairs)]
    if not ends:
        raise SettingError("pairs is 'none' and nas_addresses is empty: nothing is to be measured")
    return [
        Link(sender, receiver, count, number, at)
        for sender, receiver, at in ends
        for count in streams
        for number in range(1, whole("repeats", s.repeats) + 1)
    ]


def on(node: str, command: Sequence[str]) -> list[str]:
    """Return what runs a command on one node of the job."""
    options = [f"--nodelist={node}", "--overlap", "--cpu-bind=none"]
    return steps.argv(steps.nodes(), command, options=options)


def measure(s: argparse.Namespace, keys: Keys, link: Link) -> dict[str, Any]:
    """Measure a link; a stranger who knocks ends a node's server, so it is tried again."""
    for left in reversed(range(_TRIES)):
        try:
            found = to_nas(s, link, link.nas) if link.nas else to_node(s, keys, link)
        except (StepError, IperfError):
            if not left:
                raise
        else:
            return {
                "from": link.sender,
                "to": link.receiver,
                "streams": link.streams,
                "run": link.run,
                "to_nas": link.nas is not None,
                **found,
            }
    raise AssertionError


def to_node(s: argparse.Namespace, keys: Keys, link: Link) -> dict[str, Any]:
    """Let one node wait and the other send. Raises `StepError` or `IperfError`."""
    known = f"--keys={keys.folder}"
    wait = [sys.executable, str(SERVER), known, f"--network={s.network}"]
    with steps.started(on(link.receiver, [*wait, f"--streams={link.streams}"])) as server:
        address, ports = listening(server)
        return {"address": address, **sent(s, link, [known, address, *ports], keys.variables)}


def to_nas(s: argparse.Namespace, link: Link, at: NasAddress) -> dict[str, Any]:
    """Let a node send to an address of the NAS, once a server answers there.

    Raises `NasServerError` where none does, `SiteProgramError` where the site's program fails.
    """
    program = nas.start_server(s.nas_server, at)
    until = time.monotonic() + _NAS_SECONDS
    while True:
        try:
            found = sent(s, link, [f"--streams={link.streams}", at.host, str(at.port)])
        except IperfError as error:
            if time.monotonic() > until:
                words = nas.words(link.sender, at, s.nas_server, error)
                raise NasServerError(words) from error
            time.sleep(1)
        else:
            return {"address": at.host, "nas_server": program, **found}


def sent(
    s: argparse.Namespace,
    link: Link,
    where: Sequence[str],
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Let a node send, and return the figures. Raises `StepError` or `IperfError`."""
    lengths = [f"--seconds={s.seconds}", f"--omit={s.omit}"]
    send = [sys.executable, str(SENDER), *lengths, *where]
    found = steps.answer(on(link.sender, send), _SECONDS + s.seconds + s.omit, variables)
    if "error" in found:
        raise IperfError(found["error"])
    return found


def listening(server: "subprocess.Popen[str]") -> tuple[str, list[str]]:
    """Return the address and the ports of a server, as soon as it listens. Raises `StepError`."""
    assert server.stdout
    assert server.stderr
    if not select.select([server.stdout], [], [], _SECONDS)[0]:
        raise StepError(f"the server did not listen within {_SECONDS} s")
    address, *ports = server.stdout.readline().split() or [""]
    if not ports:
        raise StepError(f"the server ended: {server.stderr.read()[-2000:].strip()}")
    return address, ports


def hosts(nodes: Sequence[str]) -> list[dict[str, Any]]:
    """Describe the nodes."""
    command = [sys.executable, machine.__file__]
    return [json.loads(steps.run(on(node, command), _SECONDS)) for node in nodes]


def rates_of(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the runs of each link beside each other."""
    return [
        {
            **{name: runs[0][name] for name in ("from", "to", "streams")},
            **repeats.spread(runs, "gbit_per_second"),
            "retransmits": repeats.spread(runs, "retransmits")["retransmits"],
            "runs": len(runs),
            # Parts of before an upgrade are of nodes alone.
            "to_nas": runs[0].get("to_nas", False),
        }
        for runs in repeats.by(rows, "from", "to", "streams")
    ]


def main(s: argparse.Namespace) -> None:
    """Measure: the story from top to bottom."""
    results = Path(s.results).expanduser().absolute()
    of_nas = nas.addresses_of(s.nas_addresses)
    nodes = nodes_of(s.nodes, nodes_of_job(), least=1 if of_nas else 2)
    todo = links(s, nodes, of_nas)
    chosen = {name: value for name, value in vars(s).items() if name != "results"}
    result = Result(results, "network", {**chosen, "nodes": nodes}, len(todo))
    (results / "error.txt").unlink(missing_ok=True)
    seconds = len(todo) * (s.seconds + s.omit)
    to = f" and {len(of_nas)} addresses of the NAS" if of_nas else ""
    print(
        f"{len(todo)} parts between {len(nodes)} nodes{to}, about {seconds / 60:,.1f} min",
        flush=True,
    )
    stop_in_order()
    secret = results / ".keys"
    try:
        keys = iperf.new_keys(secret)
        with NodeSampler(steps.nodes(), results) as sampler:
            rows = [result.part(link.name, partial(measure, s, keys, link)) for link in todo]
    finally:
        shutil.rmtree(secret, ignore_errors=True)
    version = steps.run([iperf.IPERF, "--version"], _SECONDS).split("\n")[0]
    versions = {**machine.versions(), "iperf3": version}
    samples = thinned(sampler.samples())
    result.finish(hosts(nodes), versions, {"rates": rates_of(rows)}, samples)


if __name__ == "__main__":
    of_links = (IperfError, NasServerError, SiteProgramError)
    run(main, settings(), SettingError, ResultError, StepError, *of_links, Interrupted)
