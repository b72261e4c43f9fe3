"""The files from which a training reads while it runs, and how much there is in them."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# images.py is among the templates for several nodes.
sys.path += [str(Path(__file__).resolve().parents[2] / "distributed")]
import images

_SAMPLE = 1000


def files_of(train: Any) -> list[Path]:
    """Return the files; none where all is in memory before the first step."""
    if isinstance(train, images.Shards):
        return [train.folder / name for name in train.files]
    if isinstance(train, images.Pictures):
        return [Path(path) for path, _ in train.files]
    return []


def bytes_of(files: Sequence[Path]) -> float:
    """Estimate the size of all files from some: asking a NAS for a million takes minutes."""
    some = files[:: max(1, len(files) // _SAMPLE)]
    return sum(file.stat().st_size for file in some) / len(some) * len(files)
