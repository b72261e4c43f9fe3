"""What of our JupyterLab extension needs no browser, under node's own test runner."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_extensions_own_tests_pass() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "deploy/lab_extension.py"), "test"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout
