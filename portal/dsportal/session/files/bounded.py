"""Bounds of a process that reads what somebody else has made; the standard library only."""

import resource
from pathlib import Path

_MEMORY_BYTES = 2 * 2**30
_OOM_SCORE = Path("/proc/self/oom_score_adj")


def bound(cpu_seconds: int) -> None:
    """Limit time and memory; where the job's memory ends, this process does, and no kernel."""
    _OOM_SCORE.write_text("1000", encoding="ascii")
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    # Not of addresses, of which Arrow reserves many times what it uses.
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
