"""The measuring suite on the test instance's cluster: how its page looks, with true figures.

    export PYTHONPATH=deploy:notebook_templates/benchmarks
    "$(deploy/venv dev)"/bin/python -m benchmarks.cluster.reference_report [--resume]

A user of the test instance runs ``templates/benchmarks/cluster.ipynb`` in a session, small. The
page is docs/reference/measured-here.md with its pictures in docs/images; all summaries, without
the samples, are one file in benchmarks/results. The last line is one JSON object: what each
benchmark came to.
"""

import argparse
import json
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cluster_report
from benchmarks.commit import circumstances, commit
from tests import instance
from tests.desk import Desk
from tests.instance import ROOT, USERS
from tests.visitor import session_of

PAGE = ROOT / "docs" / "reference" / "measured-here.md"
PICTURES = "../images/measured-"
RESULTS = ROOT / "benchmarks" / "results"
RUNS, SECONDS = "logs/reference", 3600

# As large as an hour on two cores allows: whole networks, few steps.
WITH_PYTORCH = {"memory_mb_per_process": 12_000, "minutes": 60}
SIZES: dict[str, dict[str, Any]] = {
    "network": {"cores": 1, "memory_mb": 1000, "seconds": 5, "omit": 1},
    "interconnect": {**WITH_PYTORCH, "cores_per_process": 1},
    "inference": {"cores": 2, "memory_mb": 12_000, "batches": "1,4,16,64"},
    "training": {
        **WITH_PYTORCH,
        "nodes": 1,
        "cores_per_process": 2,
        "batch": 16,
        "steps": 10,
        "more": {"warmup": 3},
    },
    "scaling": {
        **WITH_PYTORCH,
        "cores_per_process": 1,
        "batch": 8,
        "steps": 10,
        "more": {"warmup": 3},
    },
    "storage": {
        "cores": 1,
        "memory_mb": 2000,
        "gib_per_gpu": 4,
        "files_per_gpu": 4,
        "seconds": 20,
        "ramp": 3,
        "other_seconds": 6,
        "more": {"other_ramp": 1},
    },
}
# What stands for the NAS, and what stands for a local disk; users can write to both.
NAS = "~/isilon/users/$USER,~"
SETTINGS_OF_ALL = {"partition": "", "gpus_per_node": 0, "mounts": NAS, "more": SIZES}

BEFORE = """\
This page is the report of `templates/benchmarks/cluster.ipynb` for the machine on which this
project is built and tested: one shared virtual machine with {machine}. Its nodes are
virtual and all on that machine: their network is the kernel's own, their storage one virtual disk,
and together they have no more cores than one. The page shows what the suite measures and how its
results look. It says nothing about GPUs, as no machine with one was available. Beside our figures
are those of the papers, from their cluster.

Made at commit `{commit}` with `benchmarks.cluster.reference_report`
([the summaries](../../{result})). On a cluster of your own:
[measure the whole cluster](../how-to/measure-the-whole-cluster.md).
"""


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resume", action="store_true", help="keep the benchmarks that are done")
    given = parser.parse_args()
    measured = circumstances(commit())
    with instance.running() as portal, session_of(portal, USERS[0]) as visitor:
        home = Path(visitor.run("import os; print(os.environ['HOME'])").strip())
        if not given.resume:
            visitor.run(f"import shutil; shutil.rmtree({RUNS!r}, ignore_errors=True)")
        desk = Desk(visitor, home, SECONDS)
        kernel = visitor.open_kernel(kernel="pytorch")
        settings = {**SETTINGS_OF_ALL, "runs_dir": f"~/{RUNS}"}
        print(desk.run_all(kernel, "benchmarks/cluster.ipynb", **settings))

    page = cluster_report.page(home / RUNS, PICTURES)
    date = datetime.now(UTC).date()
    file = RESULTS / f"reference_report_{os.cpu_count()}-cores_{date}.json"
    summaries = [json.loads(one.read_text()) for one in (home / RUNS).glob("**/summary.json")]
    for summary in summaries:
        del summary["samples"]
    file.write_text(json.dumps(measured | {"summaries": summaries}, indent=1) + "\n")
    before = BEFORE.format(**measured, result=file.relative_to(ROOT))
    replace(page, title="Measured here", head=f"{before}\n{page.head}").write(PAGE)
    print(json.dumps(measured | {one["benchmark"]: one["figures"] for one in summaries}))
    return len(page.missing)


if __name__ == "__main__":
    sys.exit(main())
