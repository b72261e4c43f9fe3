"""Horovod's environment: which PyTorch it is made for, and what its sources are told."""

import shutil
import subprocess
from pathlib import Path

import bootstrap
import horovod_environment
import pytest
import yaml


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the lock files."""
    copied = shutil.copytree(bootstrap.LOCKS, tmp_path / "locks")
    monkeypatch.setattr(bootstrap, "LOCKS", copied)
    return copied


@pytest.mark.parametrize("name", horovod_environment.KERNELS)
def test_it_is_made_anew_for_another_pytorch(name: str, locks: Path, tmp_path: Path) -> None:
    before, _ = horovod_environment.recipe(name, tmp_path)
    assert horovod_environment.recipe(name, tmp_path)[0] == before
    (locks / "kernel-jax.txt").write_text("jax==0.11\n")
    assert horovod_environment.recipe(name, tmp_path)[0] == before
    (locks / f"{horovod_environment.KERNELS[name]}.txt").write_text("torch==2.14\n")
    after, _ = horovod_environment.recipe(name, tmp_path)
    assert after != before
    assert after.name.startswith(f"{name}-")


def test_its_version_is_the_same_everywhere() -> None:
    file = bootstrap.DEPLOY / "ansible/roles/modules/defaults/main.yml"
    modules = yaml.safe_load(file.read_text())["modules_frameworks"]
    (module,) = (module for module in modules if module["name"] == "horovod")
    assert module["version"] == horovod_environment.VERSION
    assert f"horovod=={horovod_environment.VERSION} " in horovod_environment.LOCK.read_text()


def test_all_that_it_needs_at_run_time_is_in_each_pytorchs_lock() -> None:
    # Of its metadata, without what it has for other frameworks.
    needed = ("cffi", "cloudpickle", "packaging", "psutil", "pyyaml", "setuptools")
    for kernel in horovod_environment.KERNELS.values():
        locked = bootstrap.lock_file(kernel).read_text()
        assert [name for name in needed if f"\n{name}==" not in locked] == []


def test_an_environment_has_what_is_beneath_it_behind_its_own(tmp_path: Path) -> None:
    upper, lower = tmp_path / "upper", tmp_path / "lower"
    for folder in (upper, lower):
        bootstrap.call([bootstrap.PYTHON, "-m", "venv", "--without-pip", folder])
        (packages,) = folder.glob("lib/python3*/site-packages")
        (packages / "both.py").write_text(f"print({folder.name!r}, end=' ')")
    (packages / "one.py").write_text("print('found')")
    horovod_environment.put_on(upper, lower)
    argv = [str(upper / "bin/python"), "-Ic", "import both, one"]
    assert subprocess.check_output(argv, text=True) == "upper found\n"


def test_the_sources_are_compiled_by_pytorchs_standard() -> None:
    asked = horovod_environment.by_pytorchs_standard("project(a)\nset(CMAKE_CXX_STANDARD 14)\n")
    assert asked == "project(a)\nset(CMAKE_CXX_STANDARD 20)\n"
    with pytest.raises(bootstrap.DeploymentError, match=r"do not ask for C\+\+14"):
        horovod_environment.by_pytorchs_standard(asked)
