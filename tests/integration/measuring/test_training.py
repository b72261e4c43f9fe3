"""Measurements of trainings from their notebooks, over two nodes: real Slurm, gloo between CPUs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests import images
from tests.desk import PATIENCE, Desk
from tests.instance import ROOT
from tests.waiting import until

pytestmark = pytest.mark.long

SCHEMA = json.loads((ROOT / "notebook_templates" / "benchmarks" / "schema.json").read_text())
SMALL: dict[str, Any] = {
    "nodes": 2,
    "gpus_per_node": 0,
    "batch": 16,
    "steps": 5,
    "cores_per_process": 1,
    "memory_mb_per_process": 2500,
    "minutes": 5,
    "more": {"warmup": 1},
}


def summary_of(desk: Desk, name: str) -> dict[str, Any]:
    summary = json.loads((desk.home / "logs" / name / "summary.json").read_text())
    jsonschema.validate(summary, SCHEMA)
    return dict(summary)


def test_trainings_are_measured_on_both_nodes_at_each_precision(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    name, data = kernel(), "~/isilon/datasets/mnist"
    settings = {**SMALL, "models": "tiny", "precisions": "fp32,bf16", "runs_of_each": 1}
    printed = desk.run_all(name, "benchmarks/training.ipynb", **settings, data=data, wait=True)
    assert "The job completed" in printed
    # Table and figure are drawn as well.
    assert "Error" not in printed

    summary = summary_of(desk, "training/training-2x1cpu")
    assert [part["name"] for part in summary["parts"]] == ["tiny fp32 run 1", "tiny bf16 run 1"]
    # A batch is doubled for numbers of 16 bits.
    assert [part["batch"] for part in summary["parts"]] == [16, 32]
    assert {len(part["hosts"]) for part in summary["parts"]} == {2}
    # At least one process reads for each that trains, however few cores there are.
    assert {part["workers"] for part in summary["parts"]} == {1}
    assert summary["parts"][0]["hosts"] == [host["name"] for host in summary["hosts"]]
    # Each node was looked at meanwhile.
    assert set(summary["samples"]) == {host["name"] for host in summary["hosts"]}
    assert all(summary["samples"].values())
    for figures in summary["figures"]["trainings"]:
        assert (figures["processes"], figures["nodes"], figures["steps"]) == (2, 2, 5)
        assert sum(figures["shares"].values()) == pytest.approx(1)
        # 2 processes with a batch each, in the time of a step.
        whole = 2 * figures["batch"] / sum(figures["step_seconds"].values())
        assert figures["images_per_second"] <= whole * (1 + 1e-9)
    assert "No GPU" in summary["figures"]["trainings"][0]["verdict"]
    shown = desk.user.run_in(name, "print(report.markdown(found))")
    pytorch = f"PyTorch {summary['parts'][0]['version']}"
    where = f"CPU, {desk.home}/isilon/datasets/mnist"
    assert f"| tiny | {pytorch} | bf16 | {where} | 2 | 32 | " in shown
    assert "- tiny on 2: bf16 gives " in shown


def test_one_notebook_measures_each_framework_in_its_own_module(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    name = kernel()
    settings = {
        **SMALL,
        "models": "tiny",
        "precisions": "fp32",
        "frameworks": "pytorch,tensorflow,mxnet",
        "runs_of_each": 1,
        "runs_dir": "~/logs/frameworks",
        "wait": True,
    }
    printed = desk.run_all(name, "benchmarks/training.ipynb", **settings)
    assert "The job completed" in printed, printed
    summary = summary_of(desk, "frameworks/training-2x1cpu")
    # Each framework's processes on two nodes train together.
    parts = {part["framework"]: part for part in summary["parts"]}
    assert {name: part["processes"] for name, part in parts.items()} == {
        "pytorch": 2,
        "tensorflow": 2,
        "mxnet": 2,
    }
    assert "kernel-tensorflow-" in parts["tensorflow"]["python"]
    assert "kernel-mxnet-" in parts["mxnet"]["python"]
    assert summary["figures"]["not_measured"] == []

    settings |= {"nodes": 1, "frameworks": "pytorch,mxnet,tensorflow"}
    settings["kernels"] = {"tensorflow": "no-such-module"}
    printed = desk.run_all(name, "benchmarks/training.ipynb", **settings)
    assert "The job completed" in printed, printed
    summary = summary_of(desk, "frameworks/training-1x1cpu")
    parts = {part["framework"]: part for part in summary["parts"]}
    assert "kernel-mxnet-" in parts["mxnet"]["python"]
    (told,) = summary["figures"]["not_measured"]
    assert told["reason"].startswith("there is no kernel of TensorFlow here: Lmod has detected")
    assert "no-such-module" in told["reason"]
    shown = desk.user.run_in(name, "print(report.markdown(found))")
    assert "| tiny | MXNet 1.9.1 | fp32 | CPU | 1 | 16 | " in shown
    assert "- tiny fp32 on 2 with TensorFlow: " in shown


@pytest.mark.parametrize("framework", ["tensorflow", "mxnet"])
def test_another_frameworks_scaling_is_measured_from_the_same_notebook(
    framework: str, desk: Desk, kernel: Callable[..., str]
) -> None:
    name = kernel()
    settings = {**SMALL, "model": "tiny", "precision": "fp32", "runs_of_each": 1, "wait": True}
    printed = desk.run_all(name, "benchmarks/scaling.ipynb", **settings, framework=framework)
    assert "The job completed" in printed, printed
    summary = summary_of(desk, f"scaling/scaling-tiny-fp32-2x1cpu-{framework}")
    points = summary["figures"]["points"]
    assert [(point["framework"], point["processes"]) for point in points] == [
        (framework, 1),
        (framework, 2),
    ]
    times = points[1]["images_per_second"] / points[0]["images_per_second"]
    assert points[1]["speed_up"] == pytest.approx(times)
    assert all(point["shares"].keys() == {"data", "training"} for point in points)
    shown = desk.user.run_in(name, "print(report.markdown(found))")
    assert "| tiny fp32, CPU, " in shown
    title = {"tensorflow": "TensorFlow", "mxnet": "MXNet"}[framework]
    assert f" | {title} {points[0]['version']} | 1 | 1 | 16 | " in shown


@pytest.fixture(scope="module")
def image() -> Path:
    """Return a folder image with PyTorch, which takes minutes to make the first time."""
    return images.training_folder()


def test_a_training_in_an_image_is_compared_with_the_same_without(
    desk: Desk, kernel: Callable[..., str], image: Path
) -> None:
    name = kernel()
    settings = {**SMALL, "models": "tiny", "precisions": "fp32", "runs_of_each": 2}
    settings |= {"runs_dir": "~/logs/containers", "wait": True}
    for where in ({}, {"image": str(image)}):
        printed = desk.run_all(name, "benchmarks/training.ipynb", **settings, **where)
        assert "The job completed" in printed
    bare, contained = "containers/training-2x1cpu", f"containers/training-2x1cpu-in-{image.stem}"
    summary = summary_of(desk, contained)
    assert summary["configuration"]["image"] == str(image)
    assert summary["parts"][0]["python"].startswith(f"/{images.TRAINING}/")
    assert summary["parts"][0]["processes"] == 2

    runs = {"first": f"~/logs/{bare}", "others": [f"~/logs/{contained}"]}
    printed = desk.run_all(name, "benchmarks/compare.ipynb", **runs)
    assert "Error" not in printed
    show = "((what,),) = compared.values(); print(what.what, what.ratio)"
    what, ratio = desk.user.run_in(name, show).rsplit(maxsplit=1)
    speeds = [
        summary_of(desk, run)["figures"]["trainings"][0]["images_per_second"]
        for run in (bare, contained)
    ]
    assert what.startswith("tiny fp32")
    assert float(ratio) == pytest.approx(speeds[1] / speeds[0])


def test_a_measurement_that_is_cancelled_goes_on_with_what_is_missing(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    name = kernel()
    settings = {
        **SMALL,
        "model": "tiny",
        "precision": "fp32",
        "runs_of_each": 1,
        "gpus_per_node": 2,
    }
    desk.run_all(name, "benchmarks/scaling.ipynb", **settings)
    folder = desk.home / "logs" / "scaling" / "scaling-tiny-fp32-2x2"
    progress = folder / "progress.jsonl"

    def parts() -> list[dict[str, Any]]:
        lines = progress.read_text().splitlines() if progress.exists() else []
        return [line for line in map(json.loads, lines) if "part" in line]

    until(lambda: len(parts()) >= 1, seconds=60, every=0.05, what="the first part is measured")
    desk.user.run_in(name, "run.job.cancel()")
    over = desk.user.run_in(name, "print('over:', (await watching).word)", seconds=PATIENCE)
    assert "over: CANCELLED" in over
    before = parts()
    assert len(before) < 3

    # What the button Resume does.
    resumed = "run.submit(); print('over:', (await run.watch()).word)"
    assert "over: COMPLETED" in desk.user.run_in(name, resumed, seconds=PATIENCE)
    assert parts()[: len(before)] == before
    summary = summary_of(desk, "scaling/scaling-tiny-fp32-2x2")
    names = ["1 x 1 run 1", "1 x 2 run 1", "2 x 2 run 1"]
    assert [part["name"] for part in summary["parts"]] == names
    # The nodes' GPUs are Slurm's alone: it is CPUs that train.
    points = summary["figures"]["points"]
    assert [point["processes"] for point in points] == [1, 2, 4]
    assert (points[0]["speed_up"], points[0]["shares"]["all_reduce"]) == (1, 0)
    times = points[2]["images_per_second"] / points[0]["images_per_second"]
    assert points[2]["speed_up"] == pytest.approx(times)
    assert points[2]["efficiency"] == pytest.approx(times / 4)
    again = "found = result.summaries(base, 'scaling'); print(report.markdown(found))"
    shown = desk.user.run_in(name, again)
    papers = "| papers: resnet50, V100-PCIe, fp32 | MXNet | 8 | 32 | 64 |  | 29.40 | 91.9 % |"
    assert papers in shown
    assert desk.user.run_in(name, "print(report.figure(found)[:4])").strip() == r"b'\x89PNG'"
