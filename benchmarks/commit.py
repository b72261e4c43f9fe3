"""Which commit a benchmark measures."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def commit() -> str:
    """Return the commit of this clone, in short; ``unknown`` outside a repository."""
    done = subprocess.run(
        ["/usr/bin/git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return done.stdout.strip() or "unknown"
