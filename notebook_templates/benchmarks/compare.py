#!/usr/bin/env python
"""Compare measurements of the same kind: storages, formats, an image and none, before and after.

    python compare.py BEFORE AFTER --results FOLDER

BEFORE and AFTER, and more, are folders of finished runs, or their summary.json. All are compared
with the first; of a measurement of storage, so is each further mount.
"""

import argparse
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from measurement import machine
from measurement.result import Result, ResultError
from reports.comparison import (
    QUANTITIES,
    ComparisonError,
    Row,
    Side,
    compared,
    markdown,
    quantity_of,
    shortened,
    sides,
)

# record.py, which says why a program ended, is beside this folder.
sys.path += [str(Path(__file__).resolve().parent.parent / "distributed")]
from record import run

Comparisons = dict[tuple[str, str], list[Row]]


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    add = parser.add_argument
    add("runs", nargs="+", help="folders of finished runs")
    add("--results", required=True, help="folder for the results")
    return parser.parse_args()


def read(path: str) -> dict[str, Any]:
    """Read the summary of a run. Raises `ComparisonError`."""
    file = Path(path).expanduser()
    file = file / "summary.json" if file.is_dir() else file
    try:
        return dict(json.loads(file.read_text()))
    except (OSError, ValueError) as error:
        raise ComparisonError(f"{path} has no summary: is the run finished? {error}") from error


def all_sides(paths: Sequence[str]) -> tuple[str, list[Side]]:
    """Return the unit of what was measured, and all sides. Raises `ComparisonError`."""
    found = {path: read(path) for path in paths}
    kinds = {(one["benchmark"], quantity_of(one)) for one in found.values()}
    if len(kinds) > 1:
        names = " and ".join(sorted(benchmark for benchmark, _ in kinds))
        raise ComparisonError(f"these are measurements of {names}: compare like with like")
    ((_, quantity),) = kinds
    every = [side for path, name in names_of([*found]) for side in sides(name, found[path])]
    if len(every) < 2:
        raise ComparisonError(f"{paths[0]} alone has nothing to be compared with: name another run")
    return QUANTITIES[quantity], every


def names_of(paths: Sequence[str]) -> list[tuple[str, str]]:
    """Return each path with what its run is called: the path itself where folders share a name."""
    names = [name_of(path) for path in paths]
    return [
        (path, path if names.count(name) > 1 else name)
        for path, name in zip(paths, names, strict=True)
    ]


def name_of(path: str) -> str:
    """Return what a run is called: its folder's name."""
    place = Path(path).expanduser().absolute()
    return place.parent.name if place.is_file() else place.name


def compare(paths: Sequence[str]) -> tuple[str, Comparisons, list[Side]]:
    """Compare all with the first; returns the unit and the sides, too. Raises `ComparisonError`."""
    unit, every = all_sides(paths)
    first, *others = every
    return unit, {(first.name, other.name): compared(first, other) for other in others}, every


def figure(unit: str, comparisons: Mapping[tuple[str, str], Sequence[Row]]) -> bytes:
    """Draw the ratios with their spread, and where there is no difference; returns a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = [
        (f"{row.what}\n{shortened(other)}", row)
        for (_, other), all_ in comparisons.items()
        for row in all_
    ]
    drawing = Figure(figsize=(9, 1.2 + 0.5 * len(rows)), layout="constrained")
    FigureCanvasAgg(drawing)
    axis = drawing.subplots()
    axis.axvline(1, color="grey", linestyle="--")
    for at, (_, row) in enumerate(rows):
        low, high = row.spread or (row.ratio, row.ratio)
        axis.plot(
            [low, high], [at, at], color="C0" if row.differs else "grey", linewidth=3, alpha=0.5
        )
        axis.plot(row.ratio, at, "o", color="C0" if row.differs else "grey")
    axis.set_yticks(range(len(rows)), [words for words, _ in rows], fontsize="small")
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_title(f"{unit}, over {next(iter(comparisons))[0]}", fontsize="medium")
    axis.set_xlabel("ratio; grey: within the noise, or one run")
    axis.grid(axis="x", alpha=0.3)
    drawn = io.BytesIO()
    drawing.savefig(drawn, dpi=100)
    return drawn.getvalue()


def _in_json(ratio: float) -> float | None:
    # JSON has no infinity.
    return ratio if isfinite(ratio) else None


def main(s: argparse.Namespace) -> None:
    """Compare, say it, and write it down."""
    unit, comparisons, measured = compare(s.runs)
    print(markdown(unit, comparisons, measured))
    results = Path(s.results).expanduser().absolute()
    rows = [
        {
            "name": f"{row.what}: {other} over {first}",
            **asdict(row),
            "ratio": _in_json(row.ratio),
            "gain": row.gain,
            "spread": row.spread and [_in_json(ratio) for ratio in row.spread],
            "verdict": row.verdict,
        }
        for (first, other), all_ in comparisons.items()
        for row in all_
    ]
    result = Result(results, "compare", {"runs": s.runs}, len(rows))
    # These runs may have been measured again since.
    result.forget()
    for row in rows:
        result.part(row.pop("name"), lambda row=row: row)  # type: ignore[misc]
    result.finish([machine.host()], machine.versions(), {"unit": unit})


if __name__ == "__main__":
    run(main, settings(), ComparisonError, ResultError)
