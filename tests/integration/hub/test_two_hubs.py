"""Several hubs on one cluster, as where each faculty has its own."""

import subprocess
import sys

import pytest

from tests.instance import ROOT


# The people's names are the soak's, too, which another process may run for a quarter of an hour.
@pytest.mark.timeout(1500)
def test_each_hub_knows_and_ends_its_own_sessions_only() -> None:
    argv = [sys.executable, "-m", "tests.integration.hub.two_hubs"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
