#!/usr/bin/env python
"""Measure the network alone with iperf3: the rate of TCP between the nodes of a job, pair by pair.

    sbatch --nodes=4 --wrap 'python3 network.py --results run1'

One node waits, another sends; nothing else of this run is on the links then. In RESULTS stay
summary.json, and error.txt when it failed.
"""

import argparse
import ipaddress
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from links import iperf
from links.iperf import IperfError, Keys
from measurement import machine, repeats, steps
from measurement.choices import SettingError, whole
from measurement.interruption import Interrupted, stop_in_order
from measurement.result import Result, ResultError
from measurement.sampling import NodeSampler, thinned
from measurement.steps import StepError

# record.py, which says why a program ended, is beside this folder.
sys.path += [str(Path(__file__).resolve().parent.parent / "distributed")]
from record import run

SERVER, SENDER = (Path(iperf.__file__).with_name(name) for name in ("server.py", "sender.py"))
_SCONTROL = "/usr/bin/scontrol"
_SECONDS = 60
_TRIES = 3
PAIRS = ("all", "ring")


@dataclass(frozen=True)
class Link:
    """From which node to which, and how."""

    sender: str
    receiver: str
    streams: int
    run: int

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
    add("--pairs", default="all", choices=PAIRS, help="all in both directions, or each to the next")
    add("--streams", default="1,4", help="separated by commas: connections at once")
    add("--seconds", type=int, default=10, help="length of each measurement")
    add("--omit", type=int, default=2, help="seconds before it that do not count")
    add("--repeats", type=int, default=3, help="of each link")
    add("--network", default="", help="network to measure, such as 10.1.0.0/16; empty: Slurm's")
    return parser.parse_args()


def pairs(nodes: Sequence[str], kind: str) -> list[tuple[str, str]]:
    """Return who sends to whom.

    >>> pairs(["a", "b", "c"], "ring")
    [('a', 'b'), ('b', 'c'), ('c', 'a')]
    """
    if kind == "ring":
        return list(zip(nodes, [*nodes[1:], nodes[0]], strict=True))
    return list(itertools.permutations(nodes, 2))


def nodes_of(asked: str, of_job: Sequence[str]) -> list[str]:
    """Return the nodes to measure between; raises `SettingError`."""
    chosen = [name for name in asked.split(",") if name] or list(of_job)
    if strange := sorted(set(chosen) - set(of_job)):
        raise SettingError(
            f"nodes names {strange[0]}, but the job has {', '.join(of_job) or 'none'}"
        )
    if len(set(chosen)) < max(2, len(chosen)):
        raise SettingError(
            f"a network needs two nodes, and there is only {', '.join(chosen) or 'none'}: "
            "submit it to Slurm for two nodes or more"
        )
    return chosen


def nodes_of_job() -> list[str]:
    """Return the names of the job's nodes; none without a job."""
    if not steps.nodes().in_job:
        return []
    listed = os.environ["SLURM_JOB_NODELIST"]
    return steps.run([_SCONTROL, "show", "hostnames", listed], _SECONDS).split()


def links(s: argparse.Namespace, nodes: Sequence[str]) -> list[Link]:
    """Return all that is measured, in its order; raises `SettingError`."""
    whole("seconds", s.seconds)
    try:
        streams = [int(one) for one in s.streams.split(",")]
        ipaddress.ip_network(s.network or "::")
    except ValueError as error:
        raise SettingError(f"streams or network: {error}") from error
    if min(streams) < 1 or max(streams) > 128:
        raise SettingError(f"streams is {s.streams}; it must be from 1 to 128")
    return [
        Link(sender, receiver, count, number)
        for sender, receiver in pairs(nodes, s.pairs)
        for count in streams
        for number in range(1, whole("repeats", s.repeats) + 1)
    ]


def on(node: str, command: Sequence[str]) -> list[str]:
    """Return what runs a command on one node of the job."""
    options = [f"--nodelist={node}", "--overlap", "--cpu-bind=none"]
    return steps.argv(steps.nodes(), command, options=options)


def measure(s: argparse.Namespace, keys: Keys, link: Link) -> dict[str, Any]:
    """Measure a link; a stranger who knocks ends the server, so it is tried again."""
    for left in reversed(range(_TRIES)):
        try:
            found = once(s, keys, link)
        except StepError:
            if not left:
                raise
        else:
            return {
                "from": link.sender,
                "to": link.receiver,
                "streams": link.streams,
                "run": link.run,
                **found,
            }
    raise AssertionError


def once(s: argparse.Namespace, keys: Keys, link: Link) -> dict[str, Any]:
    """Let one node wait and the other send. Raises `StepError`."""
    known = f"--keys={keys.folder}"
    wait = [sys.executable, str(SERVER), known, f"--network={s.network}"]
    with steps.started(on(link.receiver, [*wait, f"--streams={link.streams}"])) as server:
        address, ports = listening(server)
        lengths = [f"--seconds={s.seconds}", f"--omit={s.omit}"]
        send = [sys.executable, str(SENDER), known, *lengths, address, *ports]
        seconds = _SECONDS + s.seconds + s.omit
        return {"address": address, **steps.answer(on(link.sender, send), seconds, keys.variables)}


def listening(server: "subprocess.Popen[str]") -> tuple[str, list[str]]:
    """Return the address and the ports of a server, as soon as it listens. Raises `StepError`."""
    assert server.stdout
    assert server.stderr
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
        }
        for runs in repeats.by(rows, "from", "to", "streams")
    ]


def main(s: argparse.Namespace) -> None:
    """Measure: the story from top to bottom."""
    results = Path(s.results).expanduser().absolute()
    nodes = nodes_of(s.nodes, nodes_of_job())
    todo = links(s, nodes)
    chosen = {name: value for name, value in vars(s).items() if name != "results"}
    result = Result(results, "network", {**chosen, "nodes": nodes}, len(todo))
    (results / "error.txt").unlink(missing_ok=True)
    seconds = len(todo) * (s.seconds + s.omit)
    print(
        f"{len(todo)} parts between {len(nodes)} nodes, about {seconds / 60:,.1f} min", flush=True
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
    run(main, settings(), SettingError, ResultError, StepError, IperfError, Interrupted)
