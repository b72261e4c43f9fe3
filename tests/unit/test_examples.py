"""The examples in docstrings give what they say."""

import doctest
import importlib
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATHS = (
    "portal",
    "spawner",
    "deploy",
    "notebook_templates/distributed",
    "notebook_templates/benchmarks",
    ".",
)
"""Folders from which modules are imported; a file is of the first that it lies below."""
BELOW = ("portal/dsportal", "spawner/jupyterhub_gpu_slurm", "deploy", "notebook_templates")
BESIDE = ("benchmarks", "tests")
EXAMPLE = "    >" + ">> "


def modules() -> dict[str, str]:
    """Return the modules with examples, by their files."""
    files = [file for folder in (*BELOW, *BESIDE) for file in (ROOT / folder).rglob("*.py")]
    told = {}
    for file in files:
        if "node_modules" not in file.parts and EXAMPLE in file.read_text(encoding="utf-8"):
            base = next(ROOT / path for path in PATHS if file.is_relative_to(ROOT / path))
            name = file.relative_to(base).with_suffix("")
            told[str(file.relative_to(ROOT))] = ".".join(name.parts).removesuffix(".__init__")
    return told


MODULES = modules()


@pytest.mark.parametrize("file", MODULES)
def test_the_examples_of_a_module_give_what_they_say(file: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # ldap3's own use of pyasn1
        module = importlib.import_module(MODULES[file])
        failed, tried = doctest.testmod(module)
    assert Path(str(module.__file__)) == ROOT / file
    assert tried > 0
    assert failed == 0
