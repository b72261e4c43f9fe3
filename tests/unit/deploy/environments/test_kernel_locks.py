"""What the kernels' environments are asked to hold: the same in each build of a framework."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[4]
LOCKS = ROOT / "deploy/locks"
DEFAULTS = yaml.safe_load(
    (ROOT / "deploy/ansible/roles/environments/defaults/main.yml").read_text()
)
# Under other names by what they are built for.
SAME = {"onnxruntime-gpu": "onnxruntime", "tensorflow": "tensorflow-cpu", "xgboost": "xgboost-cpu"}
# The rest of CUDA that a build brings, or is held back to.
CUDA = re.compile(r"nvidia-")
BUILDS = sorted(
    (name, name + ending)
    for builds in DEFAULTS["environments_cuda_builds"].values()
    for name, ending in builds.items()
)


def asked_for(file: Path) -> set[str]:
    """Return the names of what a list asks for, and the lists that it names."""
    found: set[str] = set()
    for line in file.read_text().splitlines():
        if line.startswith("-r "):
            found |= asked_for(file.parent / line.removeprefix("-r "))
        elif match := re.match(r"[a-z0-9-]+", line):
            found.add(SAME.get(match[0], match[0]))
    return {name for name in found if not CUDA.match(name)}


def locked(name: str) -> dict[str, str]:
    """Return what a lock file holds: version by name."""
    lines = (LOCKS / f"{name}.txt").read_text().splitlines()
    pairs = [line.split(" ")[0].split("==") for line in lines if "==" in line]
    return {SAME.get(name, name): version for name, version in pairs}


@pytest.mark.parametrize(("cpu", "cuda"), BUILDS)
def test_every_build_of_a_framework_is_asked_for_the_same(cpu: str, cuda: str) -> None:
    assert asked_for(LOCKS / f"{cuda}.in") == asked_for(LOCKS / f"{cpu}.in")


def test_no_build_holds_the_files_of_another_cuda() -> None:
    # Both write nvidia/nccl/lib/libnccl.so.2; XGBoost would bring the one, PyTorch needs the other.
    held = {name for name in locked("kernel-pytorch-cuda") if name.startswith("nvidia-nccl")}
    assert held == {"nvidia-nccl-cu13"}


def test_the_kernel_python_3_has_what_every_kernel_has() -> None:
    assert asked_for(LOCKS / "kernels/every.in") <= set(locked("session"))


@pytest.mark.parametrize("name", sorted({name for pair in BUILDS for name in pair}))
def test_a_lock_holds_what_is_asked_for(name: str) -> None:
    assert asked_for(LOCKS / f"{name}.in") <= set(locked(name))


def test_the_builds_for_cuda_12_can_run_on_volta() -> None:
    for name, ending in DEFAULTS["environments_cuda_builds"][12].items():
        found = locked(name + ending)
        ours = [package for package in found if package.startswith(("nvidia-", "jax-cuda"))]
        assert ours
        assert not [package for package in ours if package.endswith("cu13") or "cuda13" in package]
        # From 9.11 on cuDNN has no code for it.
        assert tuple(map(int, found["nvidia-cudnn-cu12"].split(".")[:2])) < (9, 11)


@pytest.mark.parametrize(
    "name", ["kernel-pytorch", *(lock for _, lock in BUILDS if "torch" in lock)]
)
def test_mlflows_page_reads_what_kernels_of_the_same_version_write(name: str) -> None:
    assert locked(name)["mlflow-skinny"] == locked("mlflow")["mlflow"]
