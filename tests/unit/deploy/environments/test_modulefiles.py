"""Modulefiles that ask what is there, loaded by Tcl: CUDA's and the frameworks'."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import jinja2
import pytest

ROOT = Path(__file__).resolve().parents[4]
TEMPLATES = ROOT / "deploy/ansible/roles/modules/templates"
# The words of a modulefile, which print what they are told.
WORDS = """
proc module-whatis {text} {}
proc family {name} {}
proc module-info {args} {return 1}
proc setenv {name value} {puts "$name=$value"}
proc prepend-path {name value} {puts "$name+=$value"}
source [lindex $argv 0]
"""


@pytest.fixture
def toolkits(tmp_path: Path) -> Path:
    """The folder of all toolkits."""
    return tmp_path / "usr-local"


def loaded(tmp_path: Path, template: str, **given: Any) -> tuple[str, str]:
    """Load a module; return what it sets and what it says."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # noqa: S701
    source = environment.from_string((TEMPLATES / template).read_text())
    (tmp_path / "module").write_text(source.render(ansible_managed="made", **given))
    (tmp_path / "words.tcl").write_text(WORDS)
    tclsh = shutil.which("tclsh")
    assert tclsh, "tclsh is missing: apt install tcl"
    argv = [tclsh, str(tmp_path / "words.tcl"), str(tmp_path / "module")]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=20)
    return done.stdout, done.stderr


def cuda(tmp_path: Path, toolkits: Path) -> tuple[str, str]:
    """Load the module of CUDA 9.1."""
    item = {"cuda": {"name": "cuda91/toolkit", "folder": f"{toolkits}/cuda-9.1"}}
    return loaded(tmp_path, "cuda.j2", item=item, modules_cuda_installed=f"{toolkits}/cuda")


def test_the_toolkit_of_that_version_is_set_without_a_word(tmp_path: Path, toolkits: Path) -> None:
    (toolkits / "cuda-9.1/bin").mkdir(parents=True)
    (toolkits / "cuda/bin").mkdir(parents=True)
    done, said = cuda(tmp_path, toolkits)
    assert f"CUDA_HOME={toolkits}/cuda-9.1\n" in done
    assert f"PATH+={toolkits}/cuda-9.1/bin\n" in done
    assert said == ""


def test_another_takes_its_place_and_is_named(tmp_path: Path, toolkits: Path) -> None:
    (toolkits / "cuda-12.8/bin").mkdir(parents=True)
    (toolkits / "cuda").symlink_to("cuda-12.8")
    done, said = cuda(tmp_path, toolkits)
    assert f"CUDA_HOME={toolkits}/cuda\n" in done
    assert "takes its place (cuda-12.8)" in said


def test_without_one_it_loads_and_says_so(tmp_path: Path, toolkits: Path) -> None:
    (toolkits / "cuda").mkdir(parents=True)
    done, said = cuda(tmp_path, toolkits)
    assert done == ""
    assert said.startswith("cuda91/toolkit: no CUDA toolkit on this host")


def framework(tmp_path: Path) -> str:
    """Load the module of a framework whose environment is in a folder of that name."""
    item = {"framework": {"about": "A framework", "environment": "it"}}
    paths = {"it": str(tmp_path / "it")}
    return loaded(tmp_path, "framework.j2", item=item, environments_paths=paths)[0]


def test_a_frameworks_python_comes_first(tmp_path: Path) -> None:
    assert framework(tmp_path) == f"PATH+={tmp_path}/it/bin\nVIRTUAL_ENV={tmp_path}/it\n"


def test_an_environment_that_brings_libraries_of_a_system_is_given_them(tmp_path: Path) -> None:
    libraries = tmp_path / "it/lib/x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    (tmp_path / "it/lib/python2.7").mkdir()
    assert framework(tmp_path).endswith(f"\nLD_LIBRARY_PATH+={libraries}\n")
