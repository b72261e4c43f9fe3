"""CUDA's modulefile, loaded by Tcl: what it sets with the toolkit, with another, and with none."""

import shutil
import subprocess
from pathlib import Path

import jinja2
import pytest

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = ROOT / "deploy/ansible/roles/modules/templates/cuda.j2"
# The words of a modulefile, which print what they are told.
WORDS = """
proc module-whatis {text} {}
proc module-info {args} {return 1}
proc setenv {name value} {puts "$name=$value"}
proc prepend-path {name value} {puts "$name+=$value"}
source [lindex $argv 0]
"""


@pytest.fixture
def toolkits(tmp_path: Path) -> Path:
    """The folder of all toolkits."""
    return tmp_path / "usr-local"


def loaded(tmp_path: Path, toolkits: Path) -> tuple[str, str]:
    """Load the module for 9.1; return what it sets and what it says."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # noqa: S701
    text = environment.from_string(TEMPLATE.read_text()).render(
        ansible_managed="made",
        item={"cuda": {"name": "cuda91/toolkit", "folder": f"{toolkits}/cuda-9.1"}},
        modules_cuda_installed=f"{toolkits}/cuda",
    )
    (tmp_path / "toolkit").write_text(text)
    (tmp_path / "words.tcl").write_text(WORDS)
    tclsh = shutil.which("tclsh")
    assert tclsh, "tclsh is missing: apt install tcl"
    argv = [tclsh, str(tmp_path / "words.tcl"), str(tmp_path / "toolkit")]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=20)
    return done.stdout, done.stderr


def test_the_toolkit_of_that_version_is_set_without_a_word(tmp_path: Path, toolkits: Path) -> None:
    (toolkits / "cuda-9.1/bin").mkdir(parents=True)
    (toolkits / "cuda/bin").mkdir(parents=True)
    done, said = loaded(tmp_path, toolkits)
    assert f"CUDA_HOME={toolkits}/cuda-9.1\n" in done
    assert f"PATH+={toolkits}/cuda-9.1/bin\n" in done
    assert said == ""


def test_another_takes_its_place_and_is_named(tmp_path: Path, toolkits: Path) -> None:
    (toolkits / "cuda-12.8/bin").mkdir(parents=True)
    (toolkits / "cuda").symlink_to("cuda-12.8")
    done, said = loaded(tmp_path, toolkits)
    assert f"CUDA_HOME={toolkits}/cuda\n" in done
    assert "takes its place (cuda-12.8)" in said


def test_without_one_it_loads_and_says_so(tmp_path: Path, toolkits: Path) -> None:
    (toolkits / "cuda").mkdir(parents=True)
    done, said = loaded(tmp_path, toolkits)
    assert done == ""
    assert said.startswith("cuda91/toolkit: no CUDA toolkit on this host")
