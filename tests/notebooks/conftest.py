"""The environments of the kernels, as the deployment made them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ENVIRONMENTS = Path("/opt/data-scientist-portal/environments")


@pytest.fixture(scope="session")
def python_of() -> Callable[[str], Path]:
    """Find a framework's interpreter; ``PORTAL_TENSORFLOW_PYTHON`` and so on name another one."""

    def find(framework: str) -> Path:
        named = os.environ.get(f"PORTAL_{framework.upper()}_PYTHON")
        if named:
            return Path(named)
        places = ENVIRONMENTS.glob(f"kernel-{framework}-*/bin/python")
        found = sorted(places, key=lambda path: path.lstat().st_mtime)
        assert found, f"no kernel-{framework} below {ENVIRONMENTS}; deploy/up test makes it"
        return found[-1]

    return find


@pytest.fixture(scope="session")
def tensorflow_python(python_of: Callable[[str], Path]) -> Path:
    return python_of("tensorflow")
