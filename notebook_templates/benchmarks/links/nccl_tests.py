"""NVIDIA's own programs to measure NCCL: how one is started, and how its table is read.

https://github.com/NVIDIA/nccl-tests
"""

import re
import shutil
from pathlib import Path
from typing import Any

PROGRAM = "all_reduce_perf"
# #  Rank  0 Group  0 Pid  12345 on  node001 device  0 [0x1b] NVIDIA A100-SXM4-40GB
_RANK = re.compile(r"#\s+Rank\s+\d+ ")


class TableError(ValueError):
    """A program's output is not what is known; the message is what was found."""


def find(named: str = "") -> Path | None:
    """Find the program: the one that is named, or the one of a loaded module."""
    found = shutil.which(named or PROGRAM)
    return Path(found) if found else None


def argv(
    program: Path, least: int, most: int, factor: int, gpus: int, iterations: int, warmup: int
) -> list[str]:
    """Return what measures all GPUs that one process sees."""
    options = {"b": least, "e": most, "f": factor, "g": gpus, "n": iterations, "w": warmup}
    return [
        str(program),
        *(word for key, value in options.items() for word in (f"-{key}", f"{value}")),
    ]


def read(printed: str, gpus: int | None = None) -> list[dict[str, Any]]:
    """Return bytes, microseconds and the bus bandwidth of each size, out of place.

    ``gpus``: how many must have taken part. Without MPI each process would measure by itself.

    The columns are found by their names: releases differ in how many there are.
    Raises `TableError` where there is no table, or a sum was wrong.
    """
    columns: list[str] = []
    found = []
    for line in printed.splitlines():
        words = line.split()
        if line.lstrip().startswith("#"):
            columns = [word.lstrip("#") for word in words[1:]] if "busbw" in words else columns
        elif words and words[0].isdigit() and len(words) == len(columns):
            found.append(_row(columns, words))
    ranks = [line for line in printed.splitlines() if _RANK.match(line)]
    if gpus is not None and ranks and len(ranks) != gpus:
        raise TableError(
            f"{len(ranks)} GPUs took part, not {gpus}: was {PROGRAM} built with MPI=1?"
        )
    if gpus is not None and len({line.split()[2] for line in ranks}) < len(ranks):
        raise TableError(f"processes measured by themselves: was {PROGRAM} built with MPI=1?")
    if not found:
        raise TableError(f"there is no table in {printed[-500:]!r}")
    return found


def _row(columns: list[str], words: list[str]) -> dict[str, Any]:
    # The first of each name: what comes again is the same in place.
    named = dict(reversed(list(zip(columns, words, strict=True))))
    wrong = named.get("wrong", "0")
    if wrong not in ("0", "N/A"):
        raise TableError(f"{wrong} sums of {named['size']} bytes are wrong")
    return {
        "bytes": int(named["size"]),
        "microseconds": float(named["time"]),
        "bus_gb_per_second": float(named["busbw"]),
    }
