"""The programs behind notebooks, as own copies: they find their modules in the templates."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dsportal.session.page.template_copies import set_parameter
from dsportal.session.page.templates import Catalogue
from tests.instance import ROOT
from tests.notebooks.running import said_by

TEMPLATES = ROOT / "notebook_templates"
MODULES = {"lightning": ("lightning.pytorch",), "tables": ("pandas", "xgboost", "sklearn.metrics")}
FRAMEWORKS = {"jax": "jax", "distributed/resnet_tensorflow": "tensorflow"}
TRAININGS = (
    *("distributed/resnet", "distributed/resnet_tensorflow", "jax/keras_distribution"),
    *("jax/sharding", "language/language", "lightning/lightning", "tables/tables"),
    "vision/vision",
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the templates, and a folder for copies."""
    (tmp_path / "templates").symlink_to(TEMPLATES)
    (tmp_path / "work").mkdir()
    return tmp_path


def copied(notebook: str, home: Path) -> tuple[str, dict[str, Path]]:
    """Copy what belongs to a notebook; return the cells up to the plan, and the copies."""
    model = json.loads((TEMPLATES / f"{notebook}.ipynb").read_text())
    for cell in model["cells"]:
        cell["source"] = "".join(cell["source"])
    catalogue, copies = Catalogue(home, "templates"), {}
    for one in catalogue.companions(f"templates/{notebook}.ipynb"):
        copies[one.parameter] = home / "work" / one.file.name
        shutil.copyfile(TEMPLATES / one.file, copies[one.parameter])
        assert set_parameter(model, one.parameter, one.named(one.file.name))
    codes = [cell["source"] for cell in model["cells"] if cell["cell_type"] == "code"]
    return "\n".join(codes[:2]), copies


@pytest.mark.parametrize("notebook", TRAININGS)
def test_a_copied_program_finds_its_modules(
    notebook: str, home: Path, preloaded: Callable[..., Path]
) -> None:
    folder = notebook.partition("/")[0]
    framework = FRAMEWORKS.get(notebook, FRAMEWORKS.get(folder, "pytorch"))
    python = preloaded(framework, *MODULES.get(folder, ()))
    _, copies = copied(notebook, home)
    said = said_by([python, "-B", copies["program"], "--help"], {"HOME": str(home)}, home)
    assert said.startswith("usage: "), said
    assert "--results" in said
    # What stands beside it is found first.
    (home / "work" / "record.py").write_text('raise SystemExit("a record of her own")\n')
    said = said_by([python, "-B", copies["program"], "--help"], {"HOME": str(home)}, home)
    assert said.strip().endswith("a record of her own")


@pytest.mark.parametrize(
    ("notebook", "parameter", "asked"),
    [
        ("tables/tables", "program", "plan.program"),
        ("sweeps/sweep", "objective", "plan.settings['objective'].removesuffix(':objective')"),
        ("profiling/profile", "training", "Path(file).resolve() if function == 'training' else 0"),
    ],
)
def test_a_copied_notebook_names_the_file_that_was_copied_with_it(
    notebook: str, parameter: str, asked: str, home: Path, python_of: Callable[[str], Path]
) -> None:
    cells, copies = copied(notebook, home)
    done = subprocess.run(
        [python_of("pytorch"), "-B", "-c", f"{cells}\nprint({asked})"],
        cwd=home / "work", env={"HOME": str(home)}, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1:] == [str(copies[parameter])], done.stderr
