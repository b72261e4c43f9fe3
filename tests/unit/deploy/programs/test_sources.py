"""What is sent to the machines."""

import io
import os
import runpy
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "deploy/sources"))


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in (
        *(
            ".gitignore",
            "LICENSE",
            "README.md",
            "jupyterhub_config.py",
            "pyproject.toml",
            "zensical.toml",
        ),
        "deploy/venv",
        "deploy/ansible/inventories/site/secrets.yml",
        "portal/dsportal/hub/configuration.py",
        "portal/dsportal/__pycache__/hub.pyc",
        "portal/dsportal/lab/node_modules/esbuild/index.js",
        "spawner/jupyterhub_gpu_slurm/session/script.py",
        "notebook_templates/one.ipynb",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def names_in(packed: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return archive.getnames()


def test_neither_inventories_nor_leftovers_are_sent(script: dict[str, Any], clone: Path) -> None:
    names = names_in(script["packed"](clone))
    assert [name for name in names if "/" in name] == [
        "deploy/venv",
        "notebook_templates/one.ipynb",
        "portal/dsportal/hub/configuration.py",
        "spawner/jupyterhub_gpu_slurm/session/script.py",
    ]


def test_the_same_files_are_the_same_bytes(script: dict[str, Any], clone: Path) -> None:
    first = script["packed"](clone)
    os.utime(clone / "portal/dsportal/hub/configuration.py", (1, 1))
    assert script["packed"](clone) == first
    (clone / "portal/dsportal/hub/configuration.py").write_text("changed")
    assert script["packed"](clone) != first
