"""A day of many users, compressed, with a fault at random every few minutes.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.soak [--minutes 90] [--users 200]

As root. On the test instance, deployed as a portal is; ``PORTAL_TEST_NODES`` in the environment
gives it more virtual nodes than three. People are real Unix users with entries in the directory.
Most sessions run `benchmarks.portal.soak.light_session`; some last nearly all day and run
JupyterLab, with a kernel that counts and TensorBoards.
What is asked, drawn and judged is in the modules of this package.

Lines tell of faults and findings as they come; the last line is one JSON object. It ends with 1
where an invariant was broken.
"""

import argparse
import sys
from collections.abc import Sequence

from benchmarks.commit import circumstances, commit
from benchmarks.portal.soak.crowd import SESSION_HOURS
from benchmarks.portal.soak.injection import INJECTIONS
from benchmarks.portal.soak.run import DayOutcome, Wanted, soak, told
from tests import instance


def wanted(arguments: Sequence[str] | None = None) -> Wanted:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument(
        "--real", type=int, default=10, help="users with JupyterLab, nearly all day"
    )
    parser.add_argument("--form-viewers", type=int, default=100)
    parser.add_argument("--cluster-viewers", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=30, help="on several nodes, in the mean")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--fault-seconds", type=float, default=180, help="from one fault to the next, in the mean"
    )
    parser.add_argument(
        "--faults", nargs="*", default=list(INJECTIONS), choices=list(INJECTIONS), metavar="FAULT"
    )
    given = parser.parse_args(arguments)
    if given.minutes > 60 * SESSION_HOURS:
        parser.error(f"--minutes is at most {60 * SESSION_HOURS}, as long as a session may last")
    return Wanted(**vars(given))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the result; 1 where an invariant was broken."""
    choice = wanted(arguments)
    measured = commit()
    kept: list[DayOutcome] = []
    try:
        with instance.running() as portal:
            outcome = soak(portal, choice, kept.append)
    finally:
        # Also where a stand-in or the instance could not be removed.
        for each in kept:
            print(told(each, **circumstances(measured)), flush=True)
    return 1 if outcome.findings.found else 0


if __name__ == "__main__":
    sys.exit(main())
