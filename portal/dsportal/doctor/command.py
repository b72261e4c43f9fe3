"""``portal doctor``: check this host, and print a line for each check."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dsportal.doctor import expected, finding, plan, rounds, textfile
from dsportal.doctor.checks import attachment
from dsportal.doctor.finding import Line, State
from dsportal.doctor.judgement.attachment import limits

FOLDER = Path("/etc/data-scientist-portal/doctor.d")
SLURM_CONF = Path("/etc/slurm/slurm.conf")


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask everything; give 0 where nothing has failed, 1 where something has, 2 for no question."""
    return run(parser().parse_args(arguments))


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
    described.add_argument(
        "--textfile",
        type=Path,
        help="write the states for the node exporter into this file, instead of showing them",
    )
    described.add_argument(
        "--every", type=float, default=0, metavar="SECONDS", help="go on, with this pause"
    )
    described.add_argument(
        "--attach",
        type=Path,
        nargs="?",
        const=SLURM_CONF,
        metavar="CONF",
        help="only say whether a portal can be put on top of the Slurm with this slurm.conf "
        "(%(const)s)",
    )
    described.add_argument(
        "--slurm-bin", default="/usr/bin", metavar="FOLDER", help="its programs (%(default)s)"
    )
    described.add_argument(
        "--operator",
        default="slurm",
        metavar="USER",
        help="as whom the hub would extend sessions (%(default)s)",
    )
    described.add_argument(
        "--groups",
        type=lambda names: [name for name in names.split(",") if name],
        default=[],
        metavar="A,B",
        help="the groups that may log in: has everybody in them an account in Slurm",
    )
    described.add_argument(
        "--limits",
        type=limits.read,
        default={},
        metavar="JSON",
        help="the table limits of portal.toml: has Slurm what it names",
    )


def run(options: argparse.Namespace) -> int:
    """Ask what the folder expects, and show the answers; once, or until ended."""
    hanging: dict[int, str] = {}
    try:
        while True:
            lines = _asked(options, hanging)
            _show(lines, options)
            if not options.every:
                return 1 if any(line.finding.state is State.FAILED for line in lines) else 0
            time.sleep(options.every)
    except expected.ExpectedError as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _asked(options: argparse.Namespace, hanging: dict[int, str]) -> list[Line]:
    if options.attach:
        return attachment.asked(
            str(options.attach),
            options.slurm_bin,
            options.operator,
            options.groups,
            options.limits,
        )
    checks = plan.checks_of(expected.load(options.expected))
    return rounds.run(checks, is_root=os.geteuid() == 0, hanging=hanging)


def _show(lines: Sequence[Line], options: argparse.Namespace) -> None:
    if options.textfile:
        textfile.write(options.textfile, textfile.text(lines, time.time()))
    elif options.json:
        sys.stdout.write(f"{finding.as_json(lines)}\n")
    else:
        sys.stdout.write(finding.text(lines))
        sys.stderr.write(_in_short(lines))


def _in_short(lines: Sequence[Line]) -> str:
    counts = {state: sum(line.finding.state is state for line in lines) for state in State}
    words = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    more = "; as root, all are asked" if counts[State.LEFT_OUT] else ""
    return f"{words}{more}\n"
