"""Sizes of environments, and their text for people."""

import contextlib
import math
import os
from pathlib import Path

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size_of(folder: Path) -> int:
    """Add up what is on the disk below a folder, in bytes; what is linked counts once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                status = os.lstat(os.path.join(place, name))
                if (status.st_dev, status.st_ino) not in seen:
                    seen.add((status.st_dev, status.st_ino))
                    total += 512 * status.st_blocks
    return total


def size_words(size: int) -> str:
    """Write a size for people, as JupyterLab's page does (portal/dsportal/lab/src/common/bytes.ts).

    >>> size_words(512), size_words(25_000_000), size_words(2_340_000_000)
    ('512 B', '24 MiB', '2.2 GiB')
    """
    power = 0
    while size >= 999.5 * 1024**power and power < len(_UNITS) - 1:
        power += 1
    amount = size / 1024**power
    digits = 1 if power and amount < 9.95 else 0
    # Halves up, as a browser rounds.
    rounded = math.floor(amount * 10**digits + 0.5) / 10**digits
    return f"{rounded:.{digits}f} {_UNITS[power]}"
