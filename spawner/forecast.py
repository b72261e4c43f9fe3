"""When a session of a chosen size would start, as Slurm foretells it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from spawner.errors import UnreadableOutput

_AT_ONCE = timedelta(seconds=15)
"""Slurm's forecast of an immediate start lies a second or two ahead."""

# What sbatch says of a job that can never run (slurm_errno.c, Slurm 22.05), and what it means here.
_NEVER = (
    ("node configuration is not available", "no node has so many GPUs, cores and memory"),
    ("node count", "no node of the partition can run it"),
    ("time limit", "the partition does not allow so much time"),
    ("partition", "the partition does not take it"),
    ("QOS", "your quality of service (QOS) does not allow it"),
    ("account", "your Slurm account does not allow it"),
    ("GRES", "the partition has no such GPUs"),
    ("gres", "the partition has no such GPUs"),
)
_PREFIX = re.compile(r"^(sbatch|allocation failure|error|Batch job submission failed)\s*:\s*", re.I)


@dataclass(frozen=True)
class Forecast:
    """An answer for the form."""

    state: Literal["now", "later", "never", "unknown"]
    start: datetime | None = None
    """With ``later``."""
    why: str = ""
    """With ``never`` and ``unknown``: a sentence."""

    def as_json(self) -> dict[str, str | None]:
        """Return what the form's script reads."""
        start = None if self.start is None else self.start.isoformat()
        return {"state": self.state, "start": start, "why": self.why}


def read(answer: Mapping[str, Any], now: datetime) -> Forecast:
    """Read the launcher's answer. Raises `UnreadableOutput` for what it never says."""
    if isinstance(answer.get("never"), str):
        return Forecast("never", why=_plain(answer["never"]))
    try:
        start = datetime.fromisoformat(answer["start"]).replace(tzinfo=UTC)
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableOutput(
            "Slurm's forecast could not be read.", detail=f"launcher: {answer}"
        ) from error
    return Forecast("now") if start - now <= _AT_ONCE else Forecast("later", start)


def _plain(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    last = lines[-1] if lines else "no reason given"
    while match := _PREFIX.match(last):
        last = last[match.end() :]
    for part, plain in _NEVER:
        if part in last:
            return f"{plain[0].upper()}{plain[1:]} ({last.rstrip('.')})."
    return f"Slurm says: {last.rstrip('.')}."
