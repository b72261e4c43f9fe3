"""The measuring programs, as a job step starts them: by their path, from any folder."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT

BENCHMARKS = ROOT / "notebook_templates" / "benchmarks"


@pytest.mark.parametrize(
    "program",
    [
        "cluster_report.py",
        "compare.py",
        "interconnect.py",
        "network.py",
        "scaling.py",
        "storage.py",
        "training.py",
        "filesystem/client.py",
        "links/server.py",
        "measurement/sampling.py",
    ],
)
def test_a_program_finds_its_modules(program: str, tmp_path: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-B", str(BENCHMARKS / program), "--help"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


@pytest.mark.parametrize("notebook", sorted(BENCHMARKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_finds_its_modules(notebook: Path, tmp_path: Path) -> None:
    (tmp_path / "templates").symlink_to(BENCHMARKS.parent)
    done = subprocess.run(
        [sys.executable, "-B", "-c", imports_of(notebook)],
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def imports_of(notebook: Path) -> str:
    """Return what a notebook imports, and from where; IPython is the kernel's."""
    cells = json.loads(notebook.read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    tree = compile(text, notebook.name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    lines = [ast.unparse(node) for node in tree.body]
    wanted = ("import ", "from ", "templates = ", "benchmarks = ", "sys.path")
    return "\n".join(
        line for line in lines if line.startswith(wanted) and not line.startswith("from IPython")
    )
