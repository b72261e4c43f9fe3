"""Measured figures as input, from a benchmark's summary (docs/reference/measurements.md)."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dsportal.sizing.question import SizingError


def figures(files: Iterable[Path]) -> dict[str, str]:
    """Read summaries into fields of a question; the last file has the last word.

    Raises `SizingError` for one that is not there, not a summary, or of no use here.
    """
    found: dict[str, str] = {}
    for file in files:
        try:
            found |= _figures_of(json.loads(file.read_text(encoding="utf-8")))
        except OSError as error:
            raise SizingError({"measured": f"{file}: {error.strerror}."}) from error
        except (ValueError, KeyError, TypeError) as error:
            raise SizingError(
                {"measured": f"{file} is not a summary.json of training or storage: {error}."}
            ) from error
    return found


def _figures_of(summary: Mapping[str, Any]) -> dict[str, str]:
    benchmark = summary["benchmark"]
    if benchmark not in _READERS:
        raise ValueError(f"it is of {benchmark!r}")
    return _READERS[benchmark](summary["figures"])


def _training(figures: Mapping[str, Any]) -> dict[str, str]:
    """Take the fastest of all trainings: it reads the most."""
    speeds = [
        float(one["images_per_second"]) / int(one["processes"]) for one in figures["trainings"]
    ]
    if not speeds:
        raise ValueError("it has no training")
    return {"images_per_second": f"{max(speeds):.3f}"}


def _storage(figures: Mapping[str, Any]) -> dict[str, str]:
    alone = [
        float(rate["mb_per_second"])
        for rate in figures["rates"]
        if (rate["load"], rate["clients"], len(rate["mounts"])) == ("read", 1, 1)
    ]
    if not alone:
        raise ValueError("it has no reading of one mount by one client")
    return {"mount_mb_per_second": f"{max(alone):.3f}"}


_READERS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, str]]] = {
    "training": _training,
    "storage": _storage,
}
