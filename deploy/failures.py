"""What a run of tests leaves: what failed, in few words, and how long all of it took.

python3 deploy/failures.py [--times]
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from xml.etree import ElementTree

import bootstrap

REPORTS = bootstrap.CACHE / "reports"
"""What each run of pytest has left: one file of JUnit's XML."""
_WRONG = ("failure", "error")
SHOWN = 12
"""Lines shown of what one failure says: its end, where the reason stands."""


def read(report: bytes) -> ElementTree.Element:
    """Return the root of a report, which is JUnit's XML.

    https://docs.pytest.org/en/stable/how-to/output.html#creating-junitxml-format-files

    Raises:
        ValueError: what ran the tests ended before it had written the report.

    """
    try:
        # Pytest's own words about our tests: no stranger wrote this file.
        return ElementTree.fromstring(report)  # noqa: S314
    except ElementTree.ParseError as error:
        raise ValueError(f"not a whole report: {error}") from error


def name_of(case: ElementTree.Element) -> str:
    """Return a test's name, after that of its file."""
    return f"{case.get('classname', '')}::{case.get('name', '')}"


def failures(report: bytes) -> list[str]:
    """Return each failure's test and the end of what was said.

    Raises:
        ValueError: as `read`.

    """
    found = []
    for case in read(report).iter("testcase"):
        for outcome in (one for one in case if one.tag in _WRONG):
            lines = [line for line in (outcome.text or "").splitlines() if line.strip()]
            words = f"{outcome.tag.upper()} {name_of(case)} ({float(case.get('time', 0)):.0f} s)"
            found.append("\n".join([words, *(f"    {line[:200]}" for line in lines[-SHOWN:])]))
    return found


def has_passed(report: bytes, package: str) -> bool:
    """Say whether a run had tests of a package, such as ``tests.browser``, and none failed.

    Raises:
        ValueError: as `read`.

    """
    cases = [
        case
        for case in read(report).iter("testcase")
        if f"{case.get('classname')}.".startswith(f"{package}.")
    ]
    return bool(cases) and not [one for case in cases for one in case if one.tag in _WRONG]


def seconds_of_files(report: Path) -> dict[str, float]:
    """Return how long the tests of each file took, such as ``tests/browser/options/test_form.py``.

    Of a report that is not there, or not whole, that is nothing.
    """
    try:
        cases = list(read(report.read_bytes()).iter("testcase"))
    except (FileNotFoundError, ValueError):
        return {}
    found: defaultdict[str, float] = defaultdict(float)
    for case in cases:
        packages, _, module = case.get("classname", "").partition(".test_")
        file = f"{packages.replace('.', '/')}/test_{module.partition('.')[0]}.py"
        found[file] += float(case.get("time", 0))
    return dict(found)


@dataclass(frozen=True)
class RunTimes:
    """One run of pytest, in seconds."""

    tests: int
    seconds: float
    folders: dict[str, float]
    """The sum of each folder's tests, its longest first; more than the run's, side by side."""


def run_times(report: bytes) -> RunTimes:
    """Add up what a report says of each test.

    Raises:
        ValueError: as `read`.

    """
    suite = next(read(report).iter("testsuite"))
    cases = list(suite.iter("testcase"))
    folders: defaultdict[str, float] = defaultdict(float)
    for case in cases:
        folder = "/".join(case.get("classname", "").split(".")[:2])
        folders[folder] += float(case.get("time", 0))
    longest_first = sorted(folders.items(), key=itemgetter(1), reverse=True)
    return RunTimes(
        len(cases),
        round(float(suite.get("time", 0)), 1),
        {folder: round(seconds, 1) for folder, seconds in longest_first},
    )


def times_in(report: Path) -> str:
    """Return a line of a table: how long a run took, and the tests of each of its folders."""
    try:
        run = run_times(report.read_bytes())
    except (OSError, ValueError) as error:
        return f"    ? s: {report.stem}: {error}"
    folders = ", ".join(f"{folder} {seconds:.0f} s" for folder, seconds in run.folders.items())
    return f"{run.seconds:5.0f} s: {report.stem}, {run.tests} tests: {folders}"


def failures_in(report: Path) -> list[str]:
    """Return the same of a file; that there is none, or half of one, is a failure, too."""
    try:
        return failures(report.read_bytes())
    except (OSError, ValueError) as error:
        return [f"ERROR {report.stem}: {error}"]


def main(argv: Sequence[str] | None = None) -> int:
    """Print what failed in the last runs, and return 1 when anything did; or how long they took."""
    parser = argparse.ArgumentParser(prog="deploy/failures.py", description=__doc__)
    parser.add_argument("--times", action="store_true", help="how long each run took instead")
    reports = sorted(REPORTS.glob("*.xml"))
    if parser.parse_args(argv).times:
        for report in reports:
            print(times_in(report))
        return 0
    found = [words for report in reports for words in failures_in(report)]
    for words in found:
        print(words)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
