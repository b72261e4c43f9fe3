"""The notebooks that measure storage and network, and compare, small and to their end."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.instance import PREFIX, ROOT, USERS, Instance
from tests.visitor import Visitor, session_of

BENCHMARKS = ROOT / "notebook_templates" / "benchmarks"
RUNS = "~/logs/measuring"
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
    "wait": True,
    "more": {"other_ramp": 0, "most_hits": 0},
}
NETWORK = {**JOB, "seconds": 1, "omit": 0, "repeats": 1, "streams": "1", "wait": True}
PATIENCE = 120


@dataclass
class Desk:
    """A user at the notebooks, with a kernel."""

    user: Visitor
    kernel: str

    def run_all(self, notebook: str, **parameters: object) -> str:
        """Run a notebook's cells with these parameters; return all that they wrote."""
        cells = json.loads((BENCHMARKS / notebook).read_text())["cells"]
        codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        codes[0] += "".join(f"\n{name} = {value!r}" for name, value in parameters.items())
        return "".join(self.run(code) for code in codes)

    def run(self, code: str) -> str:
        return self.user.run_in(self.kernel, code, seconds=PATIENCE)


@pytest.fixture(scope="module")
def desk(portal: Instance) -> Iterator[Desk]:
    with session_of(portal, USERS[3]) as visitor:
        one = Desk(visitor, visitor.open_kernel(kernel="pytorch"))
        one.run(f"import shutil; shutil.rmtree({RUNS[2:]!r}, ignore_errors=True)")
        one.run("from pathlib import Path; Path('measured').mkdir(exist_ok=True)")
        yield one


def test_storage_is_measured_twice_and_the_runs_are_compared(desk: Desk) -> None:
    for _ in range(2):
        printed = desk.run_all("storage.ipynb", **STORAGE, runs_dir=f"{RUNS}/storage")
        assert "The job completed" in printed, printed
        assert "Error" not in printed
    shown = desk.run("print(storage_report.markdown(finished[-1]))")
    assert f"| read | {desk.run('print(Path.home())').strip()}/measured | 2 |" in shown
    assert "| read | papers: the NAS | 4 | 18,924 |" in shown
    assert desk.run("print(list(Path('measured').iterdir()))").strip() == "[]"
    folders = [f"{RUNS}/storage/storage", f"{RUNS}/storage/storage-2"]
    printed = desk.run_all("compare.ipynb", first=folders[0], others=folders[1:])
    assert "Error" not in printed
    shown = desk.run("print(comparison.markdown(unit, compared))")
    assert "| read, 2 clients | storage: " in shown


def test_the_network_between_two_nodes_is_measured(desk: Desk) -> None:
    printed = desk.run_all("network.ipynb", **NETWORK, runs_dir=f"{RUNS}/network")
    assert "2 links, 2 parts" in printed
    assert "The job completed" in printed, printed
    shown = desk.run("print(network_report.markdown(finished[-1]))")
    assert f"| {PREFIX}node001 | {PREFIX}node002 | 1 |" in shown


def test_files_and_shards_are_read_in_jobs_and_compared(desk: Desk) -> None:
    printed = desk.run(MAKE)
    assert "Error" not in printed, printed
    names = ("jpeg", "shards")
    small = {"size": 32, "batch": 8, "images": 48, "warmup": 16, "repeats": 2, "minutes": 5}
    printed = desk.run_all(
        "reading.ipynb",
        **small,
        data=[f"~/measured-images/{name}" for name in names],
        cores=2,
        memory_mb=2500,
        runs_dir=f"{RUNS}/reading",
    )
    assert "Error" not in printed, printed
    shown = desk.run("print(comparison.markdown(unit, compared))")
    assert "| read and decode | reading-jpeg | " in shown
    assert "| reading-shards | " in shown


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
prepare.run(shards.Plan(str(images / "jpeg" / "train"), str(images / "shards"), shards=4))
"""
