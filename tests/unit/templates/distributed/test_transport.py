"""What NCCL and its kind are told: from a parameter into the job, and into the result."""

import json
import os
import shlex
import subprocess
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import transport
from plans import Plan, PlanError, script
from record import Progress, Record
from runs.speedups import markdown, table

from measurement import machine
from reports import interconnect, scaling, training
from tests.instance import ROOT
from tests.unit.templates.notebook_code import code_of, handed_to_plan, parameters_of

TOLD = {"NCCL_PROTO": "Simple", "NCCL_ALGO": "Ring", "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1"}
PLAN: dict[str, Any] = {"nodes": 2, "gpus_per_node": 4, "settings": {}}


def test_the_job_has_the_variables_whatever_its_modules_set(tmp_path: Path) -> None:
    lines = script(Plan(**PLAN, transport=TOLD), tmp_path).splitlines()
    exports = [line for line in lines if line.startswith("export NCCL_")]
    assert lines.index(exports[0]) > lines.index("module load pytorch || exit")
    told = subprocess.run(
        ["/bin/bash", "-c", "\n".join([*exports, "exec /usr/bin/env"])],
        capture_output=True,
        text=True,
        check=True,
        env={"NCCL_ALGO": "Tree"},
    ).stdout
    assert set(told.splitlines()) >= {f"{name}={value}" for name, value in TOLD.items()}


@pytest.mark.parametrize("name", ["LD_PRELOAD", "NCCL", "nccl_algo", "NCCL_ALGO=1", "NCCL_A\nB"])
def test_a_name_that_is_none_of_theirs_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="transport: "):
        script(Plan(**PLAN, transport={name: "1"}), tmp_path)


@pytest.mark.parametrize("value", ["a b", "$(id)", "'; id", 4])
def test_a_value_stays_one_word(value: object, tmp_path: Path) -> None:
    text = script(Plan(**PLAN, transport={"NCCL_ALGO": value}), tmp_path)
    (line,) = [line for line in text.splitlines() if "NCCL_ALGO" in line]
    assert shlex.split(line) == ["export", f"NCCL_ALGO={value}"]


def test_other_variables_are_another_run_and_none_are_the_run_of_before() -> None:
    assert Plan(**PLAN, transport=TOLD).asked != Plan(**PLAN).asked
    assert "transport" not in Plan(**PLAN).asked


# These measure storage and TCP: no gradients there.
WITHOUT_GRADIENTS = {"network", "storage"}
ON_SEVERAL_NODES = {
    file.stem: lines
    for file in (ROOT / "notebook_templates").glob("*/*.ipynb")
    if file.stem not in WITHOUT_GRADIENTS and "Plan(" in file.read_text()
    for lines in (code_of(file),)
    if "nodes" in parameters_of(lines)
}


def test_the_templates_for_several_nodes_are_found() -> None:
    assert ON_SEVERAL_NODES.keys() >= {
        "resnet", "own_program", "language", "vision", "lightning", "sharding",
        "keras_distribution",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(ON_SEVERAL_NODES))
def test_each_template_for_several_nodes_has_the_parameter_and_hands_it_on(name: str) -> None:
    lines = ON_SEVERAL_NODES[name]
    assert parameters_of(lines)["transport"] == "{}"
    assert handed_to_plan(lines)["transport"] == "transport"


def test_every_training_leaves_its_summary_to_the_record() -> None:
    programs = {
        file.name: text
        for file in (ROOT / "notebook_templates").glob("*/*.py")
        if "= Record(results" in (text := file.read_text())
    }
    assert programs.keys() >= {"finetune.py", "train_vit.py", "train_keras.py", "train_sharded.py"}
    for name, text in programs.items():
        assert "record.summarize(" in text or "record.finish(" in text, name
        assert 'write_json(results / "summary.json"' not in text, name


def test_a_result_says_what_was_set_whoever_set_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in transport.variables(os.environ):
        monkeypatch.delenv(name)
    assert transport.recorded(os.environ) == {}
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    monkeypatch.setenv("NCCLX", "no")
    settings = {"model": "tiny", "batch": 8, "precision": "fp32", "data": "synthetic", "size": 32}
    folder = tmp_path / "a run"
    folder.mkdir()
    # Curves need TensorBoard, which tests of this kind do without.
    monkeypatch.setattr("record.Curves", lambda *_: None)
    record = Record(folder, is_ours=True, step=0)
    record.finish(Namespace(**settings), Progress(9, 90, 3.0), 2, "CPU", None, {})
    assert json.loads((folder / "summary.json").read_text())["transport"] == {"NCCL_ALGO": "Tree"}
    assert "| a run, NCCL_ALGO=Tree | 2 |" in markdown(table(tmp_path))


def summary(figures: dict[str, Any], **told: str) -> dict[str, Any]:
    settings = {"model": "tiny", "precision": "fp32", "data": "synthetic"}
    return {
        "date": "2026-11-25T09:00:00+00:00",
        "configuration": settings | ({"transport": told} if told else {}),
        "figures": figures,
    }


def test_reports_tell_runs_with_other_variables_apart() -> None:
    rate = {"engine": "nccl", "nodes": 2, "processes": 8, "bytes": 1024}
    both = [summary({"rates": [rate]}), summary({"rates": [rate]}, NCCL_ALGO="Ring")]
    names = ["nccl, 8 processes on 2 nodes", "nccl, 8 processes on 2 nodes, NCCL_ALGO=Ring"]
    assert list(interconnect.lines_of(both)) == names
    point = {"device": "CPU"}
    assert scaling.name_of(summary({"points": [point]}, NCCL_ALGO="Ring")).endswith("=Ring")
    row = {
        **{"model": "tiny", "precision": "fp32", "processes": 2, "nodes": 1, "batch": 8},
        **{"size": 32, "device": "CPU"},
    }
    trainings = [{"trainings": [row]}] * 2
    runs = [summary(trainings[0]), summary(trainings[1], NCCL_ALGO="Ring")]
    assert [one["transport"] for one in training.rows(runs)] == ["", ", NCCL_ALGO=Ring"]


def test_a_host_says_which_adapters_it_has(tmp_path: Path) -> None:
    port = tmp_path / "infiniband" / "mlx5_0" / "ports" / "1"
    port.mkdir(parents=True)
    (port / "rate").write_text("100 Gb/sec (4X EDR)\n")
    (port / "state").write_text("4: ACTIVE\n")
    (found,) = machine.infiniband(tmp_path / "infiniband")
    assert (found["port"], found["rate"]) == ("mlx5_0:1", "100 Gb/sec (4X EDR)")
    assert found["link_layer"] == "", "not every kernel tells it"
    assert machine.infiniband(tmp_path / "none") == []


@pytest.mark.parametrize("module", ["nvidia_peermem", "nv_peer_mem"])
def test_a_host_says_whether_adapters_read_gpus(module: str, tmp_path: Path) -> None:
    assert not machine.has_gpu_direct_rdma(tmp_path)
    (tmp_path / module).mkdir()
    assert machine.has_gpu_direct_rdma(tmp_path)
