"""Measurements side by side: how much faster one is, and whether that is more than noise.

What is compared is a rate, of which more is better. The runs of a part are its values; two parts
differ when the ranges of their runs do not touch. By chance alone that happens once in C(2n, n) / 2
times with n runs each (every order of 2n values is as likely): once in 10 with 3, in 126 with 5.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean
from typing import Any

from measurement import papers

QUANTITIES = {
    "images_per_second": "images/s",
    "mb_per_second": "MB/s",
    "gbit_per_second": "Gbit/s",
    "bus_gb_per_second": "GB/s",
}
"""What a part's rate may be called, and its unit; of several the first that it has."""
_RUN = re.compile(r",? *run \d+$")


class ComparisonError(ValueError):
    """These cannot be compared; the message says why and what to do."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str
    values: Mapping[str, tuple[float, ...]]
    """What was measured, and what each run of it reached."""


@dataclass(frozen=True)
class Row:
    """What was measured on both sides."""

    what: str
    first: tuple[float, ...]
    other: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How many times as fast the other side is, by the means."""
        return fmean(self.other) / fmean(self.first)

    @property
    def spread(self) -> tuple[float, float] | None:
        """The lowest and highest ratio of two runs; ``None`` where a side has one run only."""
        if len(self.first) < 2 or len(self.other) < 2:
            return None
        return min(self.other) / max(self.first), max(self.other) / min(self.first)

    @property
    def verdict(self) -> str:
        """Whether there is a difference."""
        if self.spread is None:
            return "one run: the noise is not known"
        low, high = self.spread
        if low <= 1 <= high:
            return "within the noise"
        return f"{'faster' if low > 1 else 'slower'}, by chance 1 time in {self.orders}"

    @property
    def orders(self) -> int:
        """In how many cases that differ by nothing one is seen in which the ranges do not touch."""
        return comb(len(self.first) + len(self.other), len(self.first)) // 2

    @property
    def differs(self) -> bool:
        """Whether the ranges of the runs do not touch."""
        return self.spread is not None and not self.spread[0] <= 1 <= self.spread[1]


def shortened(text: str, most: int = 34) -> str:
    """Leave out the middle of what is too long for a figure."""
    part = (most - 1) // 3
    return text if len(text) <= most else f"{text[:part]}…{text[-2 * part :]}"


def quantity_of(summary: Mapping[str, Any]) -> str:
    """Return what a summary's rate is called. Raises `ComparisonError`."""
    for name in QUANTITIES:
        if any(name in part for part in summary["parts"]):
            return name
    raise ComparisonError(
        f"a measurement of {summary['benchmark']} has none of {', '.join(QUANTITIES)}"
    )


def sides(name: str, summary: Mapping[str, Any]) -> list[Side]:
    """Return the sides that a summary has: each mount of storage is one, else it is itself one."""
    quantity = quantity_of(summary)
    found: dict[str, dict[str, list[float]]] = {}
    for part in summary["parts"]:
        if part.get(quantity) is None:
            continue
        place, what = _place(part), _RUN.sub("", str(part["name"]))
        if place:
            number = part["clients"]
            what = f"{part['load']}, {number} client{'' if number == 1 else 's'}"
        side = found.setdefault(f"{name}: {place}" if place else name, {})
        side.setdefault(what, []).append(float(part[quantity]))
    return [
        Side(one, {what: tuple(values) for what, values in side.items()})
        for one, side in found.items()
    ]


def _place(part: Mapping[str, Any]) -> str:
    mounts = part.get("mounts") or []
    return mounts[0] if len(mounts) == 1 else f"{len(mounts)} mounts in turn" if mounts else ""


def compared(first: Side, other: Side) -> list[Row]:
    """Put what both have beside each other. Raises `ComparisonError` where that is nothing."""
    both = [what for what in first.values if what in other.values]
    if not both:
        raise ComparisonError(
            f"{first.name} and {other.name} have no part of the same name: measure both with the "
            "same settings"
        )
    return [Row(what, first.values[what], other.values[what]) for what in both]


def markdown(unit: str, comparisons: Mapping[tuple[str, str], Sequence[Row]]) -> str:
    """Show comparisons as a table."""
    lines = [
        f"| part | first | {unit} | other | {unit} | ratio | of two runs | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (first, other), rows in comparisons.items():
        for row in rows:
            spread = "" if row.spread is None else f"{row.spread[0]:.3f} to {row.spread[1]:.3f}"
            lines.append(
                f"| {row.what} | {first} | {fmean(row.first):,.5g} | {other} | "
                f"{fmean(row.other):,.5g} | {row.ratio:.3f} | {spread} | {row.verdict} |"
            )
    return "\n".join([*lines, "", *_papers(unit)])


def _papers(unit: str) -> list[str]:
    """Say what the papers found, of those differences that have a row there."""
    if unit != "images/s":
        return []
    formats = [
        f"{model} {low:g} times" if low == high else f"{model} {low:g} to {high:g} times"
        for model, (low, high) in papers.TFRECORD_OVER_JPEG.items()
    ]
    return [
        f"- The papers' containers cost {papers.MOST_CONTAINER_LOSS:.1%} of throughput at most.",
        f"- Their TFRecord files against JPEG files: {', '.join(formats)} as fast.",
    ]
