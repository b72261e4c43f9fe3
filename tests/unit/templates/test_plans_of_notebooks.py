"""The plans that notebooks make of their parameters."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT

TEMPLATES = ROOT / "notebook_templates"
PROGRAMS = {
    "distributed/resnet": "distributed/train_resnet.py",
    "distributed/resnet_tensorflow": "distributed/train_resnet_tensorflow.py",
    "jax/keras_distribution": "jax/train_keras.py",
    "jax/sharding": "jax/train_sharded.py",
    "language/language": "language/finetune.py",
    "lightning/lightning": "lightning/train_lightning.py",
    "vision/vision": "vision/train_vit.py",
}


def planned(
    notebook: str, home: Path, asked: str, **parameters: object
) -> "subprocess.CompletedProcess[str]":
    """Run the cell that makes the plan with other parameters; print what is asked of it."""
    (home / "templates").symlink_to(TEMPLATES)
    cells = json.loads((TEMPLATES / f"{notebook}.ipynb").read_text())["cells"]
    usual, plan = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"][:2]
    others = [f"{name} = {value!r}" for name, value in parameters.items()]
    return subprocess.run(
        [sys.executable, "-B", "-c", "\n".join([usual, *others, plan, f"print({asked})"])],
        cwd=home, env={"HOME": str(home)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("notebook", sorted(PROGRAMS))
def test_without_a_program_it_is_the_one_among_the_templates(notebook: str, tmp_path: Path) -> None:
    done = planned(notebook, tmp_path, "plan.program")
    wanted = tmp_path / "templates" / PROGRAMS[notebook]
    assert done.stdout.splitlines()[-1] == str(wanted), done.stderr


@pytest.mark.parametrize("notebook", sorted(PROGRAMS))
def test_a_copy_is_run_and_one_that_is_missing_is_named(notebook: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").touch()
    # "mine.py" is what a copy of the notebook has for the program beside it.
    done = planned(notebook, tmp_path, "plan.program", program="mine.py")
    assert done.stdout.splitlines()[-1] == str(tmp_path / "mine.py"), done.stderr
    (tmp_path / "templates").unlink()
    gone = planned(notebook, tmp_path, "plan.program", program="~/gone.py")
    assert gone.stderr == f"program is '~/gone.py'; there is no file {tmp_path / 'gone.py'}\n"


@pytest.mark.parametrize(
    ("schedule", "nodes", "ends"), [("constant", 0, None), ("cosine", 0, 70), ("cosine", 2, None)]
)
def test_a_cosine_in_the_session_ends_where_the_steps_do(
    schedule: str, nodes: int, ends: int | None, tmp_path: Path
) -> None:
    # There more steps continue a run; a job's are part of what it was asked for.
    asked = "plan.settings.get('schedule_steps')"
    told = {"schedule": schedule, "nodes": nodes, "steps": 70}
    done = planned("language/language", tmp_path, asked, **told)
    assert done.stdout.splitlines()[-1] == str(ends), done.stderr
