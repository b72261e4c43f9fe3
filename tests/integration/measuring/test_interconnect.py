"""All-reduces measured from the notebook, over two nodes: real Slurm, gloo between CPUs."""

import json
from collections.abc import Callable

import jsonschema
import pytest

from tests.desk import Desk
from tests.instance import NODES, ROOT

pytestmark = pytest.mark.long

SCHEMA = json.loads((ROOT / "notebook_templates" / "benchmarks" / "schema.json").read_text())
SMALL = {
    "nodes": 2,
    "gpus_per_node": 0,
    "most": 65536,
    "runs_of_each": 2,
    "cores_per_process": 1,
    "memory_mb_per_process": 2500,
    "minutes": 5,
    # gloo pays no heed to it; what counts here is that it arrives, and is kept.
    "transport": {"NCCL_ALGO": "Ring"},
    "more": {"iterations": 3},
}


def test_all_reduces_between_two_nodes_are_measured_and_drawn(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    name = kernel()
    printed = desk.run_all(name, "benchmarks/interconnect.ipynb", **SMALL, wait=True)
    assert "The job completed" in printed
    folder = desk.home / "logs" / "interconnect" / "interconnect-2x1cpu"
    summary = json.loads((folder / "summary.json").read_text())
    jsonschema.validate(summary, SCHEMA)
    assert summary["configuration"]["transport"] == {"NCCL_ALGO": "Ring"}
    # One process has nobody to add up with, so one node is left out.
    names = [f"2 processes on 2 nodes, run {run}" for run in (1, 2)]
    assert [part["name"] for part in summary["parts"]] == names
    assert len({host["name"] for host in summary["hosts"]}) == 2
    assert set(summary["samples"]) == {host["name"] for host in summary["hosts"]}
    assert {host["name"] for host in summary["hosts"]} <= set(NODES)
    for rate in summary["figures"]["rates"]:
        assert (rate["engine"], rate["nodes"], rate["processes"]) == ("gloo", 2, 2)
        # Of two processes the bus bandwidth is size / time.
        gb_per_second = [
            size["bytes"] / size["microseconds"] / 1000
            for part in summary["parts"]
            for size in part["sizes"]
            if size["bytes"] == rate["bytes"]
        ]
        assert rate["bus_gb_per_second"] == pytest.approx(sum(gb_per_second) / 2)
    shown = desk.user.run_in(name, "print(report.markdown(found))")
    assert "**gloo, 2 processes on 2 nodes, NCCL_ALGO=Ring**" in shown
    assert "| 64 KiB | " in shown
    assert desk.user.run_in(name, "print(report.figure(found)[:4])").strip() == r"b'\x89PNG'"
