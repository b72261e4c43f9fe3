"""Where the tests' time goes, from the reports that the last runs of pytest have left.

    PYTHONPATH=deploy "$(deploy/venv dev)"/bin/python -m benchmarks.suite_times [--slowest 40]

For each report (``unit``, ``here``, ``site``, ``machine``): how long the run took, and the tests'
own seconds for each of its folders; tests that ran side by side have more seconds than the run.
The last line is one JSON object; times are seconds.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path

from failures import REPORTS, name_of, read

from benchmarks.commit import circumstances, commit


@dataclass
class RunTimes:
    """One run of pytest."""

    tests: int
    seconds: float
    folders: dict[str, float]
    """The sum of each folder's tests, its longest first."""
    slowest: list[tuple[float, str]]


def run_times(report: bytes, slowest: int) -> RunTimes:
    """Add up what a report says of each test. Raises `ValueError` where it is not whole."""
    suite = next(read(report).iter("testsuite"))
    folders: defaultdict[str, float] = defaultdict(float)
    tests = []
    for case in suite.iter("testcase"):
        seconds = float(case.get("time", 0))
        folders["/".join(case.get("classname", "").split(".")[:2])] += seconds
        tests.append((round(seconds, 1), name_of(case)))
    longest_first = sorted(folders.items(), key=itemgetter(1), reverse=True)
    return RunTimes(
        len(tests),
        round(float(suite.get("time", 0)), 1),
        {folder: round(seconds, 1) for folder, seconds in longest_first},
        sorted(tests, reverse=True)[:slowest],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each folder and each slow test; return 1 where there is no report."""
    parser = argparse.ArgumentParser(prog="benchmarks.suite_times", description=__doc__)
    parser.add_argument("--reports", type=Path, default=REPORTS, help="a folder of JUnit's XML")
    parser.add_argument("--slowest", type=int, default=40, metavar="NUMBER")
    asked = parser.parse_args(argv)
    found = {
        file.stem: run_times(file.read_bytes(), asked.slowest)
        for file in sorted(asked.reports.glob("*.xml"))
    }
    for name, run in found.items():
        print(f"{run.seconds:7.1f} {name}, {run.tests} tests")
        for folder, seconds in run.folders.items():
            print(f"{seconds:15.1f} {folder}")
    slowest = sorted((each for run in found.values() for each in run.slowest), reverse=True)
    for seconds, test in slowest[: asked.slowest]:
        print(f"{seconds:7.1f} {test}")
    runs = {name: asdict(run) for name, run in found.items()}
    print(json.dumps({"benchmark": "suite_times", **circumstances(commit()), "runs": runs}))
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
