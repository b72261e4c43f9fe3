"""The notebooks that measure storage and network, that compare, and that run the others."""

import json
from typing import Any

import jsonschema
import pytest

from tests.desk import PATIENCE, Desk
from tests.instance import PREFIX, ROOT

pytestmark = pytest.mark.long

SCHEMA = json.loads((ROOT / "notebook_templates/benchmarks/schema.json").read_text())
RUNS = "~/logs/measuring"
DROP = f"/usr/local/sbin/portal-{PREFIX}-drop-caches"
JOB: dict[str, Any] = {"minutes": 5, "cores": 1, "memory_mb": 1000}
STORAGE = {
    **JOB,
    "mounts": "~/measured",
    "gpus_per_host": 1,
    "loads": "read",
    "gib_per_gpu": 0.01,
    "files_per_gpu": 2,
    "other_seconds": 1,
    "repeats": 2,
    "more": {"other_ramp": 0, "most_hits": 0},
}
NETWORK = {**JOB, "seconds": 1, "omit": 0, "repeats": 1, "streams": "1"}


@pytest.fixture(scope="module")
def pytorch(desk: Desk) -> str:
    """A kernel for all of these tests, with a folder to measure in."""
    kernel = desk.user.open_kernel(kernel="pytorch")
    desk.user.run_in(kernel, "from pathlib import Path; Path('measured').mkdir(exist_ok=True)")
    return kernel


def test_storage_is_measured_twice_and_the_runs_are_compared(desk: Desk, pytorch: str) -> None:
    settings = {**STORAGE, "runs_dir": f"{RUNS}/storage", "wait": True}
    for _ in range(2):
        printed = desk.run_all(pytorch, "benchmarks/storage.ipynb", **settings)
        assert "The job completed" in printed, printed
        assert "Error" not in printed
    shown = desk.user.run_in(pytorch, "print(report.markdown(finished[-1]))")
    assert f"| read | {desk.home}/measured | 2 |" in shown
    assert "| read | papers: the NAS | 4 | 18,924 |" in shown
    assert list((desk.home / "measured").iterdir()) == []
    folders = [f"{RUNS}/storage/storage", f"{RUNS}/storage/storage-2"]
    shown = compared(desk, pytorch, *folders)
    assert "| read, 2 clients | storage: " in shown


def compared(desk: Desk, kernel: str, first: str, other: str) -> str:
    """Run the notebook that compares; return its table."""
    settings = {"first": first, "others": [other]}
    printed = desk.run_all(kernel, "benchmarks/compare.ipynb", **settings)
    assert "Error" not in printed
    return desk.user.run_in(kernel, "print(comparison.markdown(unit, compared))")


def test_the_network_between_two_nodes_is_measured(desk: Desk, pytorch: str) -> None:
    settings = {**NETWORK, "runs_dir": f"{RUNS}/network", "wait": True}
    printed = desk.run_all(pytorch, "benchmarks/network.ipynb", **settings)
    assert "2 links, 2 parts" in printed
    assert "The job completed" in printed, printed
    shown = desk.user.run_in(pytorch, "print(report.markdown(finished[-1]))")
    assert f"| {PREFIX}node001 | {PREFIX}node002 | 1 |" in shown


def test_files_and_shards_are_read_in_jobs_and_compared(desk: Desk, pytorch: str) -> None:
    printed = desk.user.run_in(pytorch, MAKE, seconds=PATIENCE)
    assert "Error" not in printed, printed
    names = ("jpeg", "shards")
    small = {"size": 32, "batch": 8, "images": 48, "warmup": 16, "repeats": 2, "minutes": 5}
    printed = desk.run_all(
        pytorch,
        "benchmarks/reading.ipynb",
        **small,
        data=[f"~/measured-images/{name}" for name in names],
        cores=2,
        memory_mb=2500,
        runs_dir=f"{RUNS}/reading",
    )
    assert "Error" not in printed, printed
    shown = desk.user.run_in(pytorch, "print(comparison.markdown(unit, compared))")
    assert "| read and decode | reading-jpeg | " in shown
    assert "| reading-shards | " in shown


def test_a_training_from_files_begins_each_run_without_caches(desk: Desk, pytorch: str) -> None:
    settings = {
        "nodes": 2,
        "gpus_per_node": 0,
        "models": "tiny",
        "precisions": "fp32",
        "data": "~/measured-images/shards",
        "batch": 8,
        "runs_of_each": 1,
        "steps": 2,
        "minutes": 5,
        "cores_per_process": 1,
        "memory_mb_per_process": 2500,
        "runs_dir": f"{RUNS}/training",
        "more": {"size": 32, "warmup": 1, "caches-program": DROP},
        "wait": True,
    }
    printed = desk.run_all(pytorch, "benchmarks/training.ipynb", **settings)
    assert "The job completed" in printed, printed
    (file,) = desk.home.glob("logs/measuring/training/*/summary.json")
    (part,) = json.loads(file.read_text())["parts"]
    # So little data would be read from memory otherwise.
    assert (part["caches_dropped"], part["expected_hit_rate"]) == (True, 1.0)
    shown = desk.user.run_in(pytorch, "print(report.markdown(found))")
    assert f"{desk.home}/measured-images/shards: caches dropped before each run." in shown


def test_the_same_training_from_other_formats_stands_side_by_side(desk: Desk, pytorch: str) -> None:
    settings: dict[str, Any] = {
        "data_sets": {
            "home": {"JPEG": "~/measured-images/jpeg", "TFRecord": "~/measured-images/shards"},
            "nowhere": {"JPEG": "~/no-such-folder"},
        },
        "models": "tiny",
        "precisions": "fp32",
        "gpus_per_node": 0,
        "batch": 8,
        "runs_of_each": 2,
        "steps": 2,
        "transport": {"UCX_LOG_LEVEL": "error"},
        "minutes": 5,
        "runs_dir": f"{RUNS}/sources",
        "more": {
            "cores_per_process": 1,
            "memory_mb_per_process": 2500,
            "more": {"size": 32, "warmup": 1, "caches-program": DROP},
        },
    }
    printed = desk.run_all(pytorch, "benchmarks/data_sources.ipynb", **settings)
    assert "To be measured: home-JPEG, home-TFRecord, nowhere-JPEG" in printed
    # What cannot be read says why, and does not keep the others from being shown.
    assert "no-such-folder" in printed
    assert "Not measured: nowhere-JPEG" in printed, printed
    shown = desk.user.run_in(pytorch, "print(report.markdown(found))")
    assert " | fp32 | 8 | home | JPEG | " in shown
    assert " | fp32 | 8 | home | TFRecord | " in shown
    told = "print([one['configuration']['transport'] for one in found.values()])"
    assert desk.user.run_in(pytorch, told).strip() == str([settings["transport"]] * 2)

    del settings["data_sets"]["nowhere"]
    printed = desk.run_all(pytorch, "benchmarks/data_sources.ipynb", **settings)
    assert "To be measured: nothing, everything is finished" in printed


def test_one_notebook_runs_the_others_and_makes_a_page(desk: Desk, pytorch: str) -> None:
    settings = {
        "only": "network,training,storage",
        "mounts": "~/measured",
        "gpus_per_node": 0,
        "partition": "",
        "runs_dir": "~/logs/whole",
        "page_dir": "~/logs/page",
        "more": {
            "network": NETWORK,
            # What cannot be measured is told, and the next begins.
            "training": {"models": "no-such-network", "minutes": 5, "memory_mb_per_process": 1000},
            "storage": STORAGE,
        },
    }
    printed = desk.run_all(pytorch, "benchmarks/cluster.ipynb", **settings)
    assert "To be measured: network, training, storage" in printed
    assert "training.ipynb: " in printed
    assert "--models no-such-network is not one of" in printed
    page = (desk.home / "logs/page/README.md").read_text()
    parts = [line for line in page.splitlines() if line.startswith("## ")]
    assert parts == ["## Storage", "## Network"]
    assert (desk.home / "logs/page/storage.png").exists()
    for name in ("network", "storage"):
        (file,) = desk.home.glob(f"logs/whole/{name}/*/summary.json")
        jsonschema.validate(json.loads(file.read_text()), SCHEMA)

    settings["only"] = "network,storage"
    printed = desk.run_all(pytorch, "benchmarks/cluster.ipynb", **settings)
    assert "To be measured: nothing, everything is finished" in printed
    assert "Not measured: training, scaling, inference, interconnect" in printed


MAKE = """
import shutil, sys
from pathlib import Path
import numpy as np
from PIL import Image as Picture

sys.path += [str(Path("~/templates/data").expanduser())]
import prepare
import shards

images = Path("~/measured-images").expanduser()
shutil.rmtree(images, ignore_errors=True)
pixels = np.random.default_rng(1).integers(0, 256, (60, 80, 3), np.uint8)
for label in range(2):
    folder = images / "jpeg" / "train" / f"class{label}"
    folder.mkdir(parents=True)
    for number in range(40):
        Picture.fromarray(pixels).save(folder / f"{number}.jpg")
prepare.run(shards.ShardPlan(str(images / "jpeg" / "train"), str(images / "shards"), shards=4))
"""
