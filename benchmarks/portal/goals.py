"""Every figure that has a goal, in one interleaved run.

python -m benchmarks.portal.goals [--rounds 2] [--kept]

Each round runs the benchmarks that measure them once, one after the other; so what else happens on
the machine meets all of them, and a figure is given with its rounds' spread. With ``--kept`` those
that need the test instance measure number 2, which runs already. A benchmark that fails costs only
its own figures of that round: the last line names it, and the exit status is 1. An interrupted run
(Ctrl-C, SIGTERM) tells what it has measured.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

from benchmarks.commit import circumstances, commit
from benchmarks.portal.side_by_side import HERE, figures, result

RUNS: Mapping[str, tuple[str, ...]] = {
    "session_start": ("--runs", "5"),
    "journey": ("--runs", "3", "--to", "usable"),
    "tensorboard_open": ("--runs", "3"),
    "first_cell": ("--runs", "3"),
    "session_stop": ("--runs", "5"),
    "spawn_storm": ("--kinds", "ours", "--rounds", "2"),
    "large_cluster": (),
    "hub_idle": ("--minutes", "3"),
    "recovery": ("--runs", "4"),
}
"""The benchmarks, and what each is told so that a round takes well under an hour."""


@dataclass(frozen=True)
class Goal:
    """What a figure is to be at most."""

    benchmark: str
    figure: str
    """Its keys in the benchmark's result, as `figures` writes them."""
    most: float


GOALS: Mapping[str, Goal] = {
    "start of a session, of a bare jupyter lab's": Goal("session_start", "ours_over_floor", 0.35),
    "login to a usable JupyterLab, s": Goal("journey", "seconds.ours.usable.median", 2.5),
    "the same, of upstream's": Goal("journey", "ours_over_upstream.usable", 0.5),
    "TensorBoard, s": Goal("tensorboard_open", "seconds.ours.median", 1.0),
    "PyTorch's first cell, s": Goal("first_cell", "seconds.pytorch.whole.median", 1.0),
    "TensorFlow's first cell, s": Goal("first_cell", "seconds.tensorflow.whole.median", 1.5),
    "stop until GPUs are free, s": Goal("session_stop", "seconds.ours.free.median", 0.3),
    "hub's p95 in 100 starts, ms": Goal("spawn_storm", "median.ours.answer_ms_p95", 50),
    "form's p95 with 5,000 nodes, ms": Goal("large_cluster", "milliseconds.form.p95", 150),
    "the cluster's p95 with them, ms": Goal("large_cluster", "milliseconds.cluster.p95", 150),
    "jobs' p95 with 20,000, ms": Goal("large_cluster", "milliseconds.jobs.p95", 150),
    "idle hub, % of a core": Goal("hub_idle", "with_sessions.cpu_percent.all", 2),
    "its memory, MB": Goal("hub_idle", "with_sessions.memory_mb.all", 250),
    "back after a kill: hub, s": Goal("recovery", "seconds.hub.median", 2),
    "proxy, s": Goal("recovery", "seconds.proxy.median", 1),
    "cluster page, s": Goal("recovery", "seconds.cluster_service.median", 3),
}


def table(rounds: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Lay each goal beside the median and the spread of its figure; a round: benchmark to result.

    Left out is what no round has measured. Raises `KeyError` for a figure that a benchmark does not
    have (any more).
    """
    found = {}
    for name, goal in GOALS.items():
        results = [one[goal.benchmark] for one in rounds if goal.benchmark in one]
        if not results:
            continue
        measured = [dict(figures(one))[goal.figure] for one in results]
        middle = median(measured)
        found[name] = {
            "goal": goal.most,
            "median": round(middle, 2),
            "min": round(min(measured), 2),
            "max": round(max(measured), 2),
            "reached": middle <= goal.most,
        }
    return found


def main() -> None:
    """Print each result as it comes, and the table as the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--kept", action="store_true", help="measure instance 2, which runs")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    measured = commit()
    rounds: list[dict[str, dict[str, Any]]] = [{} for _ in range(given.rounds)]
    failed: list[str] = []
    for number, (benchmark, arguments) in product(range(given.rounds), RUNS.items()):
        run = f"round {number + 1}, {benchmark}"
        try:
            found = result(HERE, benchmark, arguments, "2" if given.kept else "")
        except (SystemExit, subprocess.TimeoutExpired) as error:
            failed.append(run)
            print(f"{run}: {error}", file=sys.stderr)
        except KeyboardInterrupt:
            failed.append(f"interrupted in {run}")
            break
        else:
            rounds[number][benchmark] = found
            print(f"{run}: {json.dumps(found)}", file=sys.stderr)
    whole = {
        "benchmark": "goals",
        "rounds": given.rounds,
        "kept": given.kept,
        "failed": failed,
        "figures": table(rounds),
        "results": rounds,
        "load": round(os.getloadavg()[0], 1),
        **circumstances(measured),
    }
    print(json.dumps(whole))
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
