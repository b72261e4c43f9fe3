"""Every template imports in each build of its framework, for GPUs too, which cannot be had here.

The CPU's environment stands in for the others: what their lock files do not name is hidden. So
gigabytes of CUDA need not be fetched, but by the tests marked ``long``.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import bootstrap
import pytest

from tests.instance import ROOT

TEMPLATES = ROOT / "notebook_templates"
OF = {
    "tensorflow": {
        "architectures.networks_keras",
        "images_tensorflow",
        "networks.resnet_keras",
        "train_resnet_tensorflow",
        "trials.train_speed_tensorflow",
    },
    "jax": {"devices", "sharded_lm", "train_keras", "train_sharded"},
    "mxnet": {"architectures.networks_gluon", "trials.mxnet_group", "trials.train_speed_mxnet"},
}
"""Modules of one framework; PyTorch has the others."""
ALSO = {
    "tensorflow": {"make_mnist_stand_in", "runs", "digits", "live_curves"},
    "jax": {"digits", "live_curves"},
}
"""Modules of PyTorch's that others use, too."""
LOCKS = {
    "kernel-pytorch": "pytorch",
    "kernel-pytorch-cuda": "pytorch",
    "kernel-pytorch-cuda12": "pytorch",
    "kernel-tensorflow": "tensorflow",
    "kernel-tensorflow-cuda": "tensorflow",
    "kernel-jax": "jax",
    "kernel-jax-cuda": "jax",
    "kernel-jax-cuda12": "jax",
    "kernel-mxnet": "mxnet",
}
KERNELS = {"pytorch": {"pytorch"}, "tensorflow": {"tensorflow", "keras"}}
"""The kernels of a framework, where they are not one of its name."""
SAME = {"onnxruntime": "onnxruntime-gpu", "tensorflow-cpu": "tensorflow", "xgboost-cpu": "xgboost"}
"""What a package of the CPU's environment is called in the builds for GPUs."""
INSTALLED = """
import json, re
from importlib.metadata import distributions
plain = lambda name: re.sub("[-_.]+", "-", name).lower()
print(json.dumps([plain(one.name) for one in distributions()]))
"""
IMPORT = """
import importlib, json, re, sys
from importlib.metadata import packages_distributions

lock, same, folders, names = json.load(sys.stdin)
plain = lambda name: re.sub("[-_.]+", "-", name).lower()
names_of = {
    package: {plain(name) for name in found} for package, found in packages_distributions().items()
}
locked = set(lock)

class OnlyLocked:
    @staticmethod
    def find_spec(name, path=None, target=None):
        found = names_of.get(name.partition(".")[0], set())
        if found and not any(one in locked or same.get(one) in locked for one in found):
            raise ModuleNotFoundError(f"{name} of {sorted(found)} is not in the lock", name=name)

sys.meta_path.insert(0, OnlyLocked)
sys.path[:0] = folders
for name in names:
    importlib.import_module(name)
print("imported", len(names))
"""


def modules_of(framework: str) -> list[str]:
    """Return what is imported in a framework's environment: our modules, and what notebooks do."""
    if framework == "pytorch":
        ours = all_modules() - set().union(*OF.values())
    else:
        ours = OF[framework] | ALSO.get(framework, set())
    return sorted(ours | imported_by_notebooks(framework))


def all_modules() -> set[str]:
    """Return the templates' modules, as programs in their folders import them."""
    files = [file.relative_to(TEMPLATES).with_suffix("") for file in TEMPLATES.rglob("*.py")]
    return {".".join(file.parts[1:]).removesuffix(".__init__") for file in files}


def imported_by_notebooks(framework: str) -> set[str]:
    found: set[str] = set()
    for file in TEMPLATES.glob("*/*.ipynb"):
        notebook = json.loads(file.read_text())
        if notebook["metadata"]["kernelspec"]["name"] not in KERNELS.get(framework, {framework}):
            continue
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                found |= imported_by("".join(cell["source"]))
    return found


def imported_by(source: str) -> set[str]:
    lines = [line.split() for line in source.splitlines() if not line.startswith("%")]
    named = [line for line in lines if line[:1] in (["import"], ["from"])]
    return {word.rstrip(",") for line in named for word in line[1:2]}


def test_the_modules_of_single_frameworks_are_there() -> None:
    assert set().union(*OF.values(), *ALSO.values()) <= all_modules()


@pytest.mark.parametrize("lock", LOCKS)
def test_templates_import_with_what_the_lock_names(
    lock: str, python_of: Callable[[str], Path]
) -> None:
    lines = (ROOT / f"deploy/locks/{lock}.txt").read_text().splitlines()
    locked = {line.split("==")[0] for line in lines if "==" in line}
    python, names = python_of(LOCKS[lock]), modules_of(LOCKS[lock])
    # Locks that differ only in what is not installed here hide the same: one process tells of both.
    found, error = imported_with(python, frozenset(locked & known_to(python)), tuple(names))
    assert found == f"imported {len(names)}\n", error


@cache
def known_to(python: Path) -> frozenset[str]:
    """Return the distributions of an environment, by the names that lock files have for them."""
    argv = [str(python), "-B", "-c", INSTALLED]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    return frozenset([*json.loads(said), *SAME.values()])


@cache
def imported_with(python: Path, locked: frozenset[str], names: tuple[str, ...]) -> tuple[str, str]:
    """Import modules where only what is locked can be seen; return what was printed, and errors."""
    folders = [str(path) for path in TEMPLATES.iterdir() if path.is_dir()]
    done = subprocess.run(
        [str(python), "-B", "-c", IMPORT],
        input=json.dumps([sorted(locked), SAME, folders, names]),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    return done.stdout, done.stderr


FOR_GPUS = sorted(name for name in LOCKS if "cuda" in name)


def installed(lock: str, *options: str | Path, **variables: str) -> str:
    """Install a lock file as a deployment does; return what uv said."""
    uv = bootstrap.deploy_environment() / "bin/uv"
    argv = [uv, "pip", "install", "--no-deps", "--require-hashes", "--no-build", *options]
    done = subprocess.run(
        [*argv, "-r", bootstrap.lock_file(lock)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("lock", FOR_GPUS)
def test_the_registry_has_all_that_a_build_for_gpus_needs(lock: str, tmp_path: Path) -> None:
    # All but the download of gigabytes: each version has a wheel for this Python and system.
    into: list[str | Path] = ["--dry-run", "--python", bootstrap.PYTHON, "--target", tmp_path]
    said = installed(lock, *into, UV_CACHE_DIR=str(bootstrap.CACHE / "uv"))
    assert re.search(r"nvidia-\w+", said)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("lock", FOR_GPUS)
def test_a_build_for_gpus_is_installed_and_has_all_that_templates_import(lock: str) -> None:
    # 5 to 9 GB each, which nobody here needs afterwards.
    with TemporaryDirectory() as place:
        python = Path(place, "environment/bin/python")
        bootstrap.make_empty(python.parent.parent)
        installed(lock, "--python", python, UV_CACHE_DIR=f"{place}/uv")
        names = tuple(modules_of(LOCKS[lock]))
        found, error = imported_with(python, known_to(python), names)
        assert found == f"imported {len(names)}\n", error
