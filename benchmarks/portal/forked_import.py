"""What a kernel would save that is forked from an interpreter which has imported the framework.

    PYTHONPATH=deploy "$(deploy/venv dev)"/bin/python -m benchmarks.portal.forked_import [--runs 5]

In turn for each framework, in its own environment: a new interpreter imports it, and is forked;
parent and child add up 42 ones. Told are the seconds of the import, and of fork and first sum in
the child; the threads that the import has left, which a child does not have (fork(2)), beside those
of a bare numpy's, whose library is made for that; and the memory that such an interpreter would
take, waiting. A child that does not answer within 20 s counts as one that hangs.

The last line is one JSON object: seconds (medians, minima, maxima), MB (medians).
"""

import argparse
import json
import subprocess
from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.commit import circumstances, commit
from benchmarks.portal.first_cell import ADDS_UP, PYTHON
from benchmarks.portal.session_start import summary
from tests.notebooks.running import framework_python

_FRAMEWORKS = [name for name in ADDS_UP if name not in (PYTHON, "keras")]
_FORKED = """
import json, os, select, signal, sys, time
module, expression = sys.argv[1:]

def threads():
    return len(os.listdir("/proc/self/task"))

__import__("numpy")
of_numpy, begun = threads(), time.perf_counter()
__import__(module)
imported = time.perf_counter() - begun
lines = open("/proc/self/smaps_rollup").read().splitlines()
(pss,) = (int(line.split()[1]) for line in lines if line.startswith("Pss:"))
found = {"import": imported, "threads": threads() - of_numpy, "mb": pss / 1024}
here, there = os.pipe()
begun = time.perf_counter()
child = os.fork()
if child == 0:
    assert eval(expression) == 42
    os.write(there, b"42")
    os._exit(0)
if select.select([here], [], [], 20)[0] and os.read(here, 2) == b"42":
    found["forked"] = time.perf_counter() - begun
os.kill(child, signal.SIGKILL)
print(json.dumps(found))
"""


def forked(framework: str) -> dict[str, float]:
    """Import and fork once; without ``forked`` if the child did not answer."""
    expression = ADDS_UP[framework]
    module = {"pytorch": "torch"}.get(framework, framework)
    argv = [str(framework_python(framework)), "-W", "ignore", "-c", _FORKED, module, expression]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120, cwd="/")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def whole(runs: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return the figures of one framework's runs."""
    answered = [run["forked"] for run in runs if "forked" in run]
    return {
        "import_seconds": summary([run["import"] for run in runs]),
        "forked_seconds": summary(answered) if answered else None,
        "children_that_hung": len(runs) - len(answered),
        "threads": median(run["threads"] for run in runs),
        "waiting_mb": round(median(run["mb"] for run in runs)),
    }


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    measured = commit()
    series: dict[str, list[dict[str, float]]] = {name: [] for name in _FRAMEWORKS}
    for _ in range(asked.runs):
        for name, runs in series.items():
            runs.append(forked(name))
            print(f"{name:10} {json.dumps(runs[-1])}", flush=True)
    result = {
        "benchmark": "forked_import",
        "runs": asked.runs,
        "frameworks": {name: whole(runs) for name, runs in series.items()},
        **circumstances(measured),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
