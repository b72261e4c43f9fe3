"""Programs that make what tests need: they have a time limit, and speak to standard error."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import bootstrap


def call(
    argv: Sequence[str], *, seconds: float, folder: Path | None = None, **variables: str
) -> None:
    """Run one in the deployment's environment and these variables; raises `RuntimeError`."""
    done = subprocess.run(
        argv,
        cwd=folder,
        env=bootstrap.child_environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        timeout=seconds,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{argv} ended with {done.returncode}")
