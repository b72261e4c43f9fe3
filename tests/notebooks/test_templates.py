"""The templates: how they are committed, and that they do what they say."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT

TEMPLATES = ROOT / "notebook_templates"
NOTEBOOKS = sorted(TEMPLATES.rglob("*.ipynb"))
LINE = re.compile(
    r"^epoch (\d+)  step +(\d+)  training accuracy ([\d.]+)  test accuracy ([\d.]+)$", re.MULTILINE
)

RUN = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], 4)
NotebookClient(
    notebook, timeout=300, resources={"metadata": {"path": sys.argv[2]}}
).execute()
nbformat.write(notebook, sys.argv[3])
"""


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    cells = code_cells(read(path))
    assert cells
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_what_may_be_changed_stands_first_each_with_its_reason(path: Path) -> None:
    first = code_cells(read(path))[0]
    assert first["metadata"]["tags"] == ["parameters"]
    lines = [line for line in "".join(first["source"]).splitlines() if "=" in line.split("#")[0]]
    assert lines
    assert all("#" in line for line in lines)


def test_every_folder_is_in_the_index() -> None:
    index = (TEMPLATES / "README.md").read_text(encoding="utf-8")
    folders = {path.name for path in TEMPLATES.iterdir() if path.is_dir()}
    assert all(f"`{folder}/`" in index for folder in folders - {"__pycache__"})


def test_the_tensorflow_notebook_learns_digits_it_has_not_seen(
    tensorflow_python: Path, tmp_path: Path
) -> None:
    data = tmp_path / "isilon" / "datasets" / "mnist"
    make = TEMPLATES / "data" / "make_mnist_stand_in.py"
    subprocess.run([str(tensorflow_python), str(make), str(data)], check=True, timeout=120)
    notebook = TEMPLATES / "tensorflow" / "mnist.ipynb"
    done = tmp_path / "done.ipynb"
    run(tensorflow_python, notebook, done, home=tmp_path)
    outputs = [output for cell in code_cells(read(done)) for output in cell["outputs"]]
    printed = "".join(
        "".join(output["text"]) for output in outputs if output.get("name") == "stdout"
    )
    lines = LINE.findall(printed)
    assert [int(step) for _, step, _, _ in lines] == list(range(100, 901, 100))
    assert [int(epoch) for epoch, _, _, _ in lines] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert float(lines[-1][3]) >= 0.97
    assert "900 steps in all = 3 epochs x 300" in printed
    assert list((tmp_path / "logs" / "mnist").glob("*/events.out.tfevents.*"))


def test_missing_data_is_said_in_words(tensorflow_python: Path, tmp_path: Path) -> None:
    notebook = TEMPLATES / "tensorflow" / "mnist.ipynb"
    with pytest.raises(subprocess.CalledProcessError) as failure:
        run(tensorflow_python, notebook, tmp_path / "done.ipynb", home=tmp_path)
    assert "is missing; set data_dir in the second cell" in failure.value.stderr


def run(python: Path, notebook: Path, done: Path, *, home: Path) -> None:
    """Run all cells with the kernel's own interpreter, in the notebook's own folder."""
    # The kernel's environment has no nbclient; the tests' has, and starts this interpreter.
    kernels = home / "share" / "jupyter" / "kernels" / "tensorflow"
    kernels.mkdir(parents=True)
    spec = {
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "under test",
        "language": "python",
    }
    (kernels / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-c", RUN, str(notebook), str(notebook.parent), str(done)],
        check=True,
        capture_output=True,
        text=True,
        timeout=400,
        env={
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "JUPYTER_DATA_DIR": str(home / "share" / "jupyter"),
            "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
