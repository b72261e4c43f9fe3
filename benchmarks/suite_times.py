"""Where the tests' time goes, from the reports that the last runs of pytest have left.

    PYTHONPATH=deploy "$(deploy/venv dev)"/bin/python -m benchmarks.suite_times [--slowest 40]

For each report (``unit``, ``here``, ``site``, ``machine``): how long the run took, and the tests'
own seconds for each of its folders; tests that ran side by side have more seconds than the run.
The last line is one JSON object; times are seconds.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from failures import REPORTS, name_of, read, run_times

from benchmarks.commit import circumstances, commit


def slowest_tests(report: bytes, number: int) -> list[tuple[float, str]]:
    """Return the longest seconds and whose they are. Raises `ValueError` as `failures.read`."""
    cases = read(report).iter("testcase")
    tests = [(round(float(case.get("time", 0)), 1), name_of(case)) for case in cases]
    return sorted(tests, reverse=True)[:number]


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each folder and each slow test; return 1 where there is no report."""
    parser = argparse.ArgumentParser(prog="benchmarks.suite_times", description=__doc__)
    parser.add_argument("--reports", type=Path, default=REPORTS, help="a folder of JUnit's XML")
    parser.add_argument("--slowest", type=int, default=40, metavar="NUMBER")
    asked = parser.parse_args(argv)
    reports = {file.stem: file.read_bytes() for file in sorted(asked.reports.glob("*.xml"))}
    found = {name: run_times(report) for name, report in reports.items()}
    slowest = {name: slowest_tests(report, asked.slowest) for name, report in reports.items()}
    for name, run in found.items():
        print(f"{run.seconds:7.1f} {name}, {run.tests} tests")
        for folder, seconds in run.folders.items():
            print(f"{seconds:15.1f} {folder}")
    all_of_them = sorted((each for tests in slowest.values() for each in tests), reverse=True)
    for seconds, test in all_of_them[: asked.slowest]:
        print(f"{seconds:7.1f} {test}")
    runs = {name: {**asdict(run), "slowest": slowest[name]} for name, run in found.items()}
    print(json.dumps({"benchmark": "suite_times", **circumstances(commit()), "runs": runs}))
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
