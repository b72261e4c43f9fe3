"""How the deployment of the head grows with the number of the cluster's nodes.

    export PYTHONPATH=deploy:portal:spawner
    "$(deploy/venv dev)"/bin/python -m benchmarks.deployment_size [--nodes 50 500] [--rounds 3]

Run as root. Each round asks, for a site of each size in turn, what `deploy/up SITE --limit head`
would change on a head that has nothing yet (``--check``): all of the head's tasks are planned and
all of its files are rendered. This machine is the head; the nodes are those that its controller
remembers from an earlier deployment (`tests.deploy.many_nodes`), as none can be reached. The last
line is one JSON object: seconds by the clock, and of processor time, medians and all rounds.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.commit import circumstances, commit
from tests.deploy import many_nodes
from tests.instance import ROOT


def once(count: int) -> tuple[float, float]:
    """Return the seconds, and those of processor time, for a site of so many nodes."""
    with (
        tempfile.TemporaryDirectory() as folder,
        many_nodes.site(Path(folder, "site"), count) as site,
    ):
        before, started = _processor_seconds(), time.monotonic()
        subprocess.run(
            [str(ROOT / "deploy/up"), str(site), "--limit", "head", "--check"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return time.monotonic() - started, _processor_seconds() - before


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each size, and the JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.deployment_size", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[50, 500])
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(argv)
    found: dict[int, list[tuple[float, float]]] = {count: [] for count in asked.nodes}
    for _ in range(asked.rounds):
        for count, rounds in found.items():
            rounds.append(once(count))
    sizes = {
        count: {
            "seconds": [round(seconds, 1) for seconds, _ in rounds],
            "processor_seconds": [round(seconds, 1) for _, seconds in rounds],
            "median_seconds": round(median(seconds for seconds, _ in rounds), 1),
            "median_processor_seconds": round(median(seconds for _, seconds in rounds), 1),
        }
        for count, rounds in found.items()
    }
    for count, said in sizes.items():
        print(f"{count:5d} nodes: {said['median_seconds']} s")
    print(json.dumps({"benchmark": "deployment_size", "nodes": sizes, **circumstances(commit())}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
