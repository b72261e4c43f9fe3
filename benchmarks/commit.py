"""Which commit a benchmark measures, and on what."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def commit(name: str = "HEAD") -> str:
    """Return a commit of this clone, in short; ``unknown`` outside one, or without git."""
    argv = ["/usr/bin/git", "-C", str(ROOT), "rev-parse", "--short", name]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def circumstances(measured: str) -> dict[str, str]:
    """Say on what, of which commit and when a figure was measured."""
    return {
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "commit": measured,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
