"""What JupyterLab's extensions cost a session's start: with all that are offered, and with none.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.session_extensions [--rounds N]

As root, with ``PORTAL_TEST_KEEP=1`` on the portal of the tests where it runs. In turn, some starts
with ``session.extensions`` as it is, and some with the empty list, before which the hub is
restarted. A start is timed as in `session_start`: from the request to the event that the session is
ready, with one GPU. The first of each block is not counted: the hub has just started.

The last line is one JSON object: seconds (medians, minima, maxima), and the median of the ratios of
the rounds' medians, with extensions over without.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from benchmarks.commit import circumstances, commit
from benchmarks.portal.session_start import USER, HubApi, ratio, summary
from tests import faults, instance
from tests.instance import Instance
from tests.visitor import Visitor


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6, help="blocks of each kind")
    parser.add_argument("--starts", type=int, default=3, help="starts that are counted in a block")
    asked = parser.parse_args()
    seconds: dict[str, list[float]] = {"all": [], "none": []}
    medians: dict[str, list[float]] = {"all": [], "none": []}
    with instance.running() as portal:
        kinds: dict[str, Callable[[], AbstractContextManager[None]]] = {
            "all": nullcontext,
            "none": lambda: faults.setting(portal, "[session]", "[session]\nextensions = []"),
        }
        for _ in range(asked.rounds):
            for kind, setting in kinds.items():
                with setting():
                    block = timed(portal, asked.starts)
                print(kind, *(f"{one:.2f} s" for one in block), flush=True)
                seconds[kind] += block
                medians[kind].append(statistics.median(block))
    result = {
        "benchmark": "session_extensions",
        "rounds": asked.rounds,
        "starts": asked.starts,
        "seconds": {kind: summary(values) for kind, values in seconds.items()},
        "all_over_none": ratio(medians["all"], medians["none"]),
        **circumstances(commit()),
    }
    print(json.dumps(result))


def timed(portal: Instance, starts: int) -> list[float]:
    """Start and stop a session some times; return the seconds of all starts but the first."""
    visitor = Visitor(portal, USER)
    visitor.log_in().raise_for_status()
    hub = HubApi(f"{portal.url}/hub/api", {"Authorization": f"token {visitor.token()}"})
    found = [hub.time_a_start(USER, {"gpus": 1}) for _ in range(starts + 1)]
    visitor.close()
    return found[1:]


if __name__ == "__main__":
    main()
