"""The environment of the TensorFlow kernel, as the deployment made it."""

import os
from pathlib import Path

import pytest

ENVIRONMENTS = Path("/opt/data-scientist-portal/environments")


@pytest.fixture(scope="session")
def tensorflow_python() -> Path:
    """The kernel's interpreter; ``PORTAL_TENSORFLOW_PYTHON`` names another one."""
    named = os.environ.get("PORTAL_TENSORFLOW_PYTHON")
    if named:
        return Path(named)
    found = sorted(
        ENVIRONMENTS.glob("kernel-tensorflow-*/bin/python"), key=lambda path: path.lstat().st_mtime
    )
    assert found, f"no kernel-tensorflow below {ENVIRONMENTS}; deploy/up test makes it"
    return found[-1]
