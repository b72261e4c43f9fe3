"""The ResNet notebooks run the program among the templates, or a copy of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT

TEMPLATES = ROOT / "notebook_templates"
PROGRAMS = {"resnet": "train_resnet.py", "resnet_tensorflow": "train_resnet_tensorflow.py"}


def planned(notebook: str, home: Path, program: str) -> "subprocess.CompletedProcess[str]":
    """Run the cell that makes the plan; it prints which program that is of."""
    (home / "templates").symlink_to(TEMPLATES)
    cells = json.loads((TEMPLATES / "distributed" / f"{notebook}.ipynb").read_text())["cells"]
    parameters, plan = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"][
        :2
    ]
    source = "\n".join([parameters, f"program = {program!r}", plan, "print(plan.program)"])
    return subprocess.run(
        [sys.executable, "-B", "-c", source],
        cwd=home, env={"HOME": str(home)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("notebook", sorted(PROGRAMS))
def test_without_a_program_it_is_the_one_among_the_templates(notebook: str, tmp_path: Path) -> None:
    done = planned(notebook, tmp_path, "")
    wanted = tmp_path / "templates" / "distributed" / PROGRAMS[notebook]
    assert done.stdout.splitlines()[-1] == str(wanted), done.stderr


@pytest.mark.parametrize("notebook", sorted(PROGRAMS))
def test_a_copy_is_run_and_one_that_is_missing_is_named(notebook: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").touch()
    done = planned(notebook, tmp_path, "~/mine.py")
    assert done.stdout.splitlines()[-1] == str(tmp_path / "mine.py"), done.stderr
    (tmp_path / "templates").unlink()
    gone = planned(notebook, tmp_path, "~/gone.py")
    assert gone.stderr == "program is '~/gone.py'; there is no such file\n"
