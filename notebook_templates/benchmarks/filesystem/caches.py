"""Caches between a measurement and the storage: dropped where the user may, else outgrown.

What is read from a host's memory says nothing of the storage. Where nobody may drop the page cache,
the papers let the data outgrow it, and say which share of reads a cache can still answer.

    python caches.py PROGRAM FOLDER...      drops this host's caches, and says whether it did, and
                                            whether FS-Cache keeps what is read there, in JSON
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

# It is a program, too.
sys.path += [str(Path(__file__).resolve().parents[1])]

from filesystem import fs_cache
from measurement import site_program

DROP = "/usr/local/sbin/portal-drop-caches"
"""The site's program; role `measuring` puts it there where the site allows it."""
_SUDO = "/usr/bin/sudo"
_FLUSH_SECONDS = 600
FLUSH_HELP = "a program of the site's that flushes the NAS's caches before each {}; empty: none"
SECONDS = 120
"""Dropping takes no longer than that, or is given up."""


def hit_rate(cache_bytes: float, data_bytes: float) -> float:
    """Return the share of reads that a cache can answer, 0 to 1: its size over the data's.

    The papers: 768 GB of a host's memory and 22.2 TB of data, 3.5 %.
    """
    return min(1.0, cache_bytes / data_bytes)


def outgrown(cache_bytes: int, most_hits: float) -> int:
    """Return the bytes of data of which a cache can answer no more than ``most_hits``, 0 to 1."""
    return math.ceil(cache_bytes / most_hits)


def memory_bytes() -> int:
    """Return the memory of this host: no page cache is larger."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def may_drop(program: str) -> bool:
    """Say whether the site lets this user drop this host's caches."""
    return _ran([_SUDO, "-n", "-l", program])


def drop(program: str) -> bool:
    """Let this host forget what it read; returns whether it did."""
    return _ran([_SUDO, "-n", program])


def flush_nas(program: str) -> str | None:
    """Let the NAS forget what it read, by a program of the site's own; return what did, if any.

    On OneFS that is ``isi_for_array isi_flush``, which the site's program runs there, over ssh for
    example. Raises `SiteProgramError` where it fails: a measurement must not take a full cache for
    an empty one.
    """
    if not program:
        return None
    site_program.run("flush-nas", [program], _FLUSH_SECONDS)
    return program


def _ran(argv: list[str]) -> bool:
    try:
        return (
            subprocess.run(argv, capture_output=True, timeout=SECONDS, check=False).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


if __name__ == "__main__":
    program, *folders = sys.argv[1:]
    kept = fs_cache.of_folders(map(Path, folders))
    print(json.dumps({"caches_dropped": drop(program), "fs_cache": kept}))
