"""What a session is composed of, and its tests' stand-ins, can be used without JupyterHub."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
PACKAGE = REPOSITORY / "spawner/jupyterhub_gpu_slurm"
FOLDERS = ("options", "outlook", "session", "slurm")
PARTS = [
    PACKAGE / "connection.py",
    PACKAGE / "metrics.py",
    *(path for folder in FOLDERS for path in sorted((PACKAGE / folder).rglob("*.py"))),
]
STAND_INS = [
    REPOSITORY / "tests/unit/spawner" / name
    for name in (
        "slurm_stand_in.py",
        "session/conftest.py",
        "session/test_job.py",
        "session/test_start.py",
        "session/test_time_extension.py",
    )
]
# A fresh interpreter: in this one JupyterHub is loaded already.
PROGRAM = """
import importlib, json, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("batchspawner", "jupyterhub"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
roots, names = json.load(sys.stdin)
sys.path[:0] = roots
for name in names:
    importlib.import_module(name)
"""


def loaded(*names: str) -> subprocess.CompletedProcess[str]:
    """Load modules where JupyterHub and batchspawner cannot be loaded."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([[str(REPOSITORY), str(PACKAGE.parent)], names]),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def module(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts)


def test_the_parts_of_a_session_load_without_jupyterhub() -> None:
    names = [module(path, PACKAGE.parent) for path in PARTS]
    assert "jupyterhub_gpu_slurm.session.job" in names
    done = loaded(*names)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_stand_ins_of_their_tests_load_without_jupyterhub() -> None:
    done = loaded(*(module(path, REPOSITORY) for path in STAND_INS))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "name", ["jupyterhub_gpu_slurm.traits", "tests.unit.spawner.stand_in", "batchspawner"]
)
def test_what_needs_jupyterhub_does_not_load_there(name: str) -> None:
    assert "is blocked" in loaded(name).stderr
