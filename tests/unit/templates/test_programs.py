"""The measuring programs, as a job step starts them: by their path, from any folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT

BENCHMARKS = ROOT / "notebook_templates" / "benchmarks"


@pytest.mark.parametrize(
    "program",
    [
        "cluster_report.py",
        "compare.py",
        "interconnect.py",
        "network.py",
        "scaling.py",
        "storage.py",
        "training.py",
        "filesystem/client.py",
        "links/server.py",
        "measurement/sampling.py",
    ],
)
def test_a_program_finds_its_modules(program: str, tmp_path: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-B", str(BENCHMARKS / program), "--help"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")
