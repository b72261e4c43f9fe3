"""All measurements of a GPU in one command, at sizes for a CPU."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cluster import gpu
from tests.instance import ROOT

pytestmark = pytest.mark.long

MINUTES = 28


def measured(python: Path, *options: str) -> dict[str, Any]:
    """Run the command; return each part's result."""
    argv = [str(python), "-B", "-m", "benchmarks.cluster.gpu", "--tiny", "--rounds", "1"]
    argv += ["--minutes", str(MINUTES), *options]
    done = subprocess.run(
        argv, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60 * (MINUTES + 1)
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["benchmark"] == "gpu"
    return dict(found["parts"])


def missing(python: Path, part: dict[str, Any]) -> str | None:
    """Return the package that a part names as missing, where it is missing."""
    named = re.search(r"No module named '([\w.]+)'", part.get("said", ""))
    if named is None:
        return None
    tried = subprocess.run(
        [str(python), "-c", f"import {named[1]}"], capture_output=True, check=False, timeout=60
    )
    return named[1] if tried.returncode else None


def speeds_of(name: str, part: dict[str, Any]) -> list[float | None]:
    """Return what a part has measured, per second."""
    if name in ("lora", "all-weights"):
        return list(part["tokens_per_second"].values())
    if name in ("vision", "resnet"):
        return list(part["images_per_second"].values())
    summary = part["summary"]
    if name == "jax":
        return [summary["tokens_per_second"]]
    if name == "networks":
        return [one["images_per_second"] for one in summary["figures"]["trainings"]]
    return list(summary["figures"]["best_images_per_second"].values())


@pytest.mark.timeout(60 * (MINUTES + 2))
def test_each_part_has_a_result_or_names_the_package_that_is_missing(
    python_of: Callable[[str], Path],
) -> None:
    python = python_of("pytorch")
    found = measured(python)
    assert tuple(found) == gpu.PARTS
    lacking = {name: missing(python, part) for name, part in found.items() if "failed" in part}
    # The environment of PyTorch has no JAX.
    assert lacking in ({}, {"jax": "jax"}), found
    for name in gpu.PARTS:
        if name not in lacking:
            speeds = speeds_of(name, found[name])
            assert speeds, name
            assert all(speed and speed > 0 for speed in speeds), (name, speeds)
    for name in ("lora", "vision", "all-weights", "resnet"):
        assert {"plain"} <= set(found[name]["ours_over"]), name


def test_the_part_with_jax_has_a_result_in_its_own_environment(
    python_of: Callable[[str], Path],
) -> None:
    found = measured(python_of("jax"), "--parts", "jax")
    assert list(found) == ["jax"]
    (speed,) = speeds_of("jax", found["jax"])
    assert speed
    assert found["jax"]["summary"]["steps"] == 20
