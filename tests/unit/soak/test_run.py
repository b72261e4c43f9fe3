"""What a day leaves in writing."""

import json
import threading
from dataclasses import replace
from typing import cast

from benchmarks.portal.soak import day
from benchmarks.portal.soak.day import Scale
from benchmarks.portal.soak.findings import Disturbance, Findings
from benchmarks.portal.soak.run import DayOutcome, Wanted, told
from benchmarks.portal.soak.stays import Stays
from benchmarks.portal.soak.watcher import InvariantWatcher
from tests.instance import Instance

SCALE = Scale(seconds=600, users=4, all_day=2, jobs=1, nodes=64, gpus_per_node=4, fault_seconds=60)
WANTED = Wanted(
    seed=1,
    minutes=10,
    users=4,
    real=2,
    form_viewers=0,
    cluster_viewers=0,
    jobs=1,
    fault_seconds=60,
    faults=["hub killed", "slurmd frozen"],
)


def test_what_was_chosen_stands_beside_what_happened() -> None:
    happened = Disturbance("slurmd frozen", begin=60, seconds=7.5, which=0.4)
    findings = Findings(disturbances=[replace(happened, repaired=68, recovered=69)])
    findings.opened("TensorBoards")
    findings.count("looks at counters")
    watcher = InvariantWatcher(cast("Instance", None), Stays(), findings, threading.Event())
    planned = day.drawn(1, SCALE, WANTED.faults)
    shown = json.loads(told(DayOutcome(WANTED, findings, watcher, planned), commit="abc"))
    assert shown["faults"] == ["hub killed", "slurmd frozen"]
    (one,) = shown["disturbances"]
    assert (one["name"], one["seconds"], one["which"]) == ("slurmd frozen", 7.5, 0.4)
    assert (shown["nodes"], shown["gpus_per_node"]) == (64, 4)
    assert shown["counts"] == {"looks at counters": 1}
    assert shown["most_at_once"] == {"TensorBoards": 1}
    assert shown["commit"] == "abc"
