"""The doctor's findings for Prometheus, through the node exporter's textfile collector."""

import os
from collections.abc import Iterable
from pathlib import Path

from dsportal.doctor.finding import Line, State

_VALUES = {State.OK: 0, State.WARNING: 1, State.FAILED: 2}
_HEAD = """\
# HELP portal_doctor_state How portal doctor finds a part: 0 ok, 1 warning, 2 failed.
# TYPE portal_doctor_state gauge
"""
_TAIL = """\
# HELP portal_doctor_asked_timestamp_seconds When it looked.
# TYPE portal_doctor_asked_timestamp_seconds gauge
"""


def text(lines: Iterable[Line], now: float) -> str:
    """Write a sample for each check; what was left out is not known, and has none."""
    samples = "".join(
        f'portal_doctor_state{{check="{_escaped(line.check)}"}} {_VALUES[line.finding.state]}\n'
        for line in lines
        if line.finding.state in _VALUES
    )
    return f"{_HEAD}{samples}{_TAIL}portal_doctor_asked_timestamp_seconds {now:.0f}\n"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def write(file: Path, content: str) -> None:
    """Put a file in the place of the older one, so that nobody reads half of it."""
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_text(content, encoding="utf-8")
    fresh.chmod(0o644)
    fresh.replace(file)
