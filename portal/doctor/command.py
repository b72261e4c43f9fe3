"""``portal doctor``: say line by line how this host is."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from portal.doctor import expected, finding, plan, rounds
from portal.doctor.finding import Line, State

FOLDER = Path("/etc/data-scientist-portal/doctor.d")


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask everything; give 0 where nothing has failed, 1 where something has, 2 for no question."""
    options = parser().parse_args(arguments)
    return run(options.expected, as_json=options.json)


def parser() -> argparse.ArgumentParser:
    """Say what may be asked."""
    described = argparse.ArgumentParser(prog="portal doctor", description=__doc__)
    add_options(described)
    return described


def add_options(described: argparse.ArgumentParser) -> None:
    """Say what may be chosen."""
    described.add_argument("--json", action="store_true", help="for programs")
    described.add_argument(
        "--expected",
        type=Path,
        default=FOLDER,
        help="the folder in which the deployment wrote what this host must have (%(default)s)",
    )


def run(folder: Path, *, as_json: bool) -> int:
    """Ask what the folder expects, and show the answers."""
    try:
        checks = plan.checks_of(expected.load(folder))
    except expected.ExpectedError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    lines = rounds.run(checks, is_root=os.geteuid() == 0)
    sys.stdout.write(f"{finding.as_json(lines)}\n" if as_json else finding.text(lines))
    if not as_json:
        sys.stderr.write(_in_short(lines))
    return 1 if any(line.finding.state is State.FAILED for line in lines) else 0


def _in_short(lines: Sequence[Line]) -> str:
    counts = {state: sum(line.finding.state is state for line in lines) for state in State}
    words = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    more = "; as root, all are asked" if counts[State.LEFT_OUT] else ""
    return f"{words}{more}\n"
