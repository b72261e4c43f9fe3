"""Which commit a benchmark measures, and on what."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def commit(name: str = "HEAD", checkout: Path = ROOT) -> str:
    """Return a commit of a clone, in short; ``unknown`` outside one, or without git."""
    argv = ["/usr/bin/git", "-C", str(checkout), "rev-parse", "--short", name]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def circumstances(measured: str) -> dict[str, str]:
    """Say on what, of which commit and when a figure was measured."""
    return {
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "processor": _processor(),
        "python": platform.python_version(),
        "commit": measured,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def _processor() -> str:
    """Return its name and its clock rate at this moment; virtual machines often hide the former."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    pairs = (line.partition(":") for line in lines)
    told = {name.strip(): value.strip() for name, _, value in pairs}
    return f"{told.get('model name', 'unknown')}, {float(told.get('cpu MHz', 0)):.0f} MHz"
