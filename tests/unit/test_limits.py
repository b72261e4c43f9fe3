"""What prepares a test comes to an end, too."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.instance import ROOT

CONFTEST = """
from tests import conftest
from tests.conftest import pytest_runtest_setup, pytest_runtest_teardown

conftest.FIXTURES_SECONDS = 0.3
"""
TESTS = """
import time
import pytest

@pytest.fixture
def slow_to_begin():
    time.sleep(60)

@pytest.fixture
def slow_to_end():
    yield
    time.sleep(60)

@pytest.mark.timeout(20, func_only=True)
@pytest.mark.usefixtures(FIXTURE)
def test_it():
    time.sleep(0.6)
"""


@pytest.mark.parametrize(
    ("fixture", "outcomes"),
    [("slow_to_begin", "1 error in"), ("slow_to_end", "1 passed, 1 error in")],
)
def test_a_fixture_that_hangs_fails(tmp_path: Path, fixture: str, outcomes: str) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS.replace("FIXTURE", repr(fixture)))
    argv = [sys.executable, "-m", "pytest", "-c", "/dev/null", "-p", "no:cacheprovider", "."]
    path = f"{ROOT}:{ROOT / 'deploy'}:{ROOT / 'portal'}:{ROOT / 'spawner'}"
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": path}
    ran = subprocess.run(
        argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=50
    )
    assert outcomes in ran.stdout, ran.stdout + ran.stderr
    assert "Timeout (>0.3s) from pytest-timeout" in ran.stdout
