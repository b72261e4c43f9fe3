"""What a run of tests leaves: what failed, in few words, and how long each file took."""

import sys
from collections import defaultdict
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
    """Return how long the tests of each file took, such as ``tests/browser/test_form.py``.

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


def failures_in(report: Path) -> list[str]:
    """Return the same of a file; that there is none, or half of one, is a failure, too."""
    try:
        return failures(report.read_bytes())
    except (OSError, ValueError) as error:
        return [f"ERROR {report.stem}: {error}"]


def main() -> int:
    """Print what failed in the last runs; return 1 when anything did."""
    found = [words for report in sorted(REPORTS.glob("*.xml")) for words in failures_in(report)]
    for words in found:
        print(words)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
