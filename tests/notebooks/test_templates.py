"""The templates: how they are committed, and that they do what they say."""

import gzip
import json
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT
from tests.notebooks.running import kernel_argv, run, run_in, written_to

TEMPLATES = ROOT / "notebook_templates"
NOTEBOOKS = sorted(TEMPLATES.rglob("*.ipynb"))
LINE = re.compile(
    r"^epoch (\d+)  step +(\d+)  training accuracy ([\d.]+)  test accuracy ([\d.]+)$", re.MULTILINE
)
SPEED = re.compile(r"; (\d+) s, ([\d,]+) images/s$", re.MULTILINE)

# Each framework's notebook: its kernel, the environment of its interpreter, how long it trains.
MNIST = {
    "tensorflow": ("tensorflow", "tensorflow", 2),
    "keras": ("keras", "tensorflow", 2),
    "pytorch": ("pytorch", "pytorch", 2),
    "mxnet": ("mxnet", "mxnet", 2),
    "jax": ("jax", "jax", 2),
    "r": ("ir", None, 2),
}
# What writes curves for TensorBoard.
WITH_CURVES = {"tensorflow", "keras", "pytorch"}
WITH_GRAPH = {"tensorflow", "keras"}
_SHOWN = """
import pathlib, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
for folder in {file.parent for file in pathlib.Path(sys.argv[1]).rglob("events.out.tfevents.*")}:
    found = EventAccumulator(str(folder)).Reload()
    print("graph" if found.Tags()["graph"] else "")
    for tag in found.Tags()["tensors"]:
        print(found.SummaryMetadata(tag).plugin_data.plugin_name)
"""


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def printed_in(cell: dict[str, Any]) -> str:
    return "".join("".join(output.get("text", "")) for output in cell["outputs"])


def shown_by_tensorboard(python: Path, logs: Path) -> set[str]:
    """Return the parts of TensorBoard's page for which these summaries hold something."""
    argv = [str(python), "-c", _SHOWN, str(logs)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120)
    return set(done.stdout.split())


SLOW_TEST = {
    "python": "(time.sleep(0.4), test_accuracy())[1]",
    "R": "{ Sys.sleep(0.4); test_accuracy() }",
}


def with_slow_tests(notebook: Path, to: Path) -> Path:
    """Copy a notebook of which each test, while it trains, takes 0.4 s more."""
    content = read(notebook)
    slow = SLOW_TEST[content["metadata"]["kernelspec"]["language"]]
    (cell,) = (cell for cell in code_cells(content) if "report_every == 0" in source(cell))
    before, reports = source(cell).split("report_every == 0", 1)
    assert "test_accuracy()" in reports
    cell["source"] = f"{before}report_every == 0{reports.replace('test_accuracy()', slow, 1)}"
    copy = to / "slow.ipynb"
    copy.write_text(json.dumps(content), encoding="utf-8")
    return copy


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    cells = code_cells(read(path))
    assert cells
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_what_may_be_changed_stands_first_each_with_its_reason(path: Path) -> None:
    first = code_cells(read(path))[0]
    assert first["metadata"]["tags"] == ["parameters"]
    lines = [
        line
        for line in "".join(first["source"]).splitlines()
        if re.search("=|<-", line.split("#")[0])
    ]
    assert lines
    assert all("#" in line for line in lines)


def test_every_folder_is_in_the_index() -> None:
    index = (TEMPLATES / "README.md").read_text(encoding="utf-8")
    folders = {path.name for path in TEMPLATES.iterdir() if path.is_dir()}
    assert all(f"`{folder}/`" in index for folder in folders - {"__pycache__"})


@pytest.mark.timeout(900)
@pytest.mark.parametrize("framework", MNIST)
def test_a_notebook_learns_digits_it_has_not_seen(
    framework: str, nas: Path, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    kernel, environment, epochs = MNIST[framework]
    (tmp_path / "isilon").symlink_to(nas)
    argv = kernel_argv(python_of(environment) if environment else None)
    notebook = TEMPLATES / framework / "mnist.ipynb"
    assert read(notebook)["metadata"]["kernelspec"]["name"] == kernel
    slow = with_slow_tests(notebook, tmp_path)
    done = run_in(notebook.parent, kernel, argv, slow, home=tmp_path, epochs=epochs)
    printed = written_to(done, "stdout")
    lines = LINE.findall(printed)
    assert [int(step) for _, step, _, _ in lines] == list(range(100, 300 * epochs + 1, 100))
    assert [int(epoch) for epoch, _, _, _ in lines] == [
        epoch for epoch in range(1, epochs + 1) for _ in range(3)
    ]
    # The speed is the training's: tests and drawing, of more than the second that is lost by
    # rounding, are in the seconds alone.
    (seconds, speed), *_ = SPEED.findall(printed)
    assert float(speed.replace(",", "")) * (int(seconds) - 0.5) > 30_000 * epochs
    assert float(lines[-1][3]) >= 0.97
    assert f"{300 * epochs} steps in all = {epochs} epochs x 300" in printed
    assert "NOT MNIST" in printed
    training = next(cell for cell in code_cells(read(done)) if LINE.search(printed_in(cell)))
    shown = [output.get("data", {}) for output in training["outputs"]]
    # One picture, drawn again and again, and one bar, which is full.
    assert sum("image/png" in data for data in shown) == 1
    bars = [data["text/html"] for data in shown if "text/html" in data]
    assert len(bars) == 1
    assert f'max="{300 * epochs}" value="{300 * epochs}"' in "".join(bars[0])
    curves = list((tmp_path / "logs" / "mnist").rglob("events.out.tfevents.*"))
    assert bool(curves) is (framework in WITH_CURVES)
    if framework in WITH_GRAPH:
        seen = shown_by_tensorboard(python_of("tensorflow"), tmp_path / "logs" / "mnist")
        assert {"scalars", "images", "histograms"} <= seen
        # TensorFlow's of a step, and Keras's of the layers: TensorBoard shows both under Graphs.
        assert seen & {"graph", "graph_keras_model"}
        loss_curve = next(cell for cell in code_cells(read(done)) if "plt.yscale" in source(cell))
        assert any("image/png" in output.get("data", {}) for output in loss_curve["outputs"])


FEW = {"train": 300, "t10k": 53}


def test_any_number_of_digits_can_be_tested_with_jax(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    for part, count in FEW.items():
        head = struct.pack(">IIII", 2051, count, 28, 28), struct.pack(">II", 2049, count)
        content = bytes(count * 28 * 28), bytes(count)
        for kind, first, rest in zip(("images-idx3", "labels-idx1"), head, content, strict=True):
            (tmp_path / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(first + rest))
    notebook = TEMPLATES / "jax" / "mnist.ipynb"
    kernel, environment, _ = MNIST["jax"]
    argv = kernel_argv(python_of(environment) if environment else None)
    chosen = {"epochs": 1, "report_every": 3, "data_dir": str(tmp_path)}
    done = run(kernel, argv, notebook, home=tmp_path, **chosen)
    assert "test accuracy at the end 1.0000" in written_to(done, "stdout")


@pytest.mark.parametrize("framework", ["pytorch", "r"])
def test_missing_data_is_said_in_words(
    framework: str, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    kernel, environment, epochs = MNIST[framework]
    argv = kernel_argv(python_of(environment) if environment else None)
    with pytest.raises(subprocess.CalledProcessError) as failure:
        run(kernel, argv, TEMPLATES / framework / "mnist.ipynb", home=tmp_path, epochs=epochs)
    assert "is missing; set data_dir in the second cell" in failure.value.stderr
