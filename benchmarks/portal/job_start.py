"""How long Slurm takes from ``sbatch`` to a job's first line, by version.

    PYTHONPATH=deploy "$(deploy/venv dev)"/bin/python -m benchmarks.portal.job_start [--jobs 30]

As root. Debian 12's Slurm and Debian 13's, each with one idle node, in roots of their own
(`tests.debian.roots`) on this machine. Jobs are submitted to each in turn, at random moments, one
at a time: what a single session's start waits for.

The last line is one JSON object; seconds.
"""

import argparse
import json
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness import slurm_in_root
from benchmarks.portal.session_start import summary
from tests.debian import building, roots
from tests.network.sockets import free_ports

_SUITES = ("bookworm", "trixie")
_PACKAGES = ("munge", "python3", "slurm-client", "slurmctld", "slurmd")


@contextmanager
def _slurm(suite: str) -> Iterator[subprocess.Popen[str]]:
    root = roots.equipped(_PACKAGES, suite)
    program = Path(slurm_in_root.__file__)
    ports = map(str, free_ports(2))
    argv = building.within(root, ["/usr/bin/python3", str(program), *ports], lent=[program])
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None  # noqa: S101  # it is a pipe
    return process.stdout.readline().strip()


def _submit(process: subprocess.Popen[str]) -> dict[str, float]:
    assert process.stdin is not None  # noqa: S101  # it is a pipe
    print(file=process.stdin, flush=True)
    return dict(json.loads(_answer(process)))


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=30, help="of each Slurm")
    given = parser.parse_args()
    measured = commit()
    times: dict[str, list[dict[str, float]]] = {}
    with ExitStack() as stack:
        slurms = {}
        for suite in _SUITES:
            process = stack.enter_context(_slurm(suite))
            slurms[_answer(process).removeprefix("ready ")] = process
        for _ in range(given.jobs):
            for version, process in slurms.items():
                time.sleep(random.random())  # noqa: S311  # whenever a user happens to press
                times.setdefault(version, []).append(_submit(process))
    result = {
        "benchmark": "job_start",
        "jobs": given.jobs,
        **{
            version: {name: summary([one[name] for one in of]) for name in of[0]}
            for version, of in times.items()
        },
        **circumstances(measured),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
