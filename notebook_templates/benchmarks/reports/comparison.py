"""Measurements side by side: how much faster one is, and whether that is more than noise.

What is compared is a rate, of which more is better. The runs of a part are its values; two parts
differ when the ranges of their runs do not touch. By chance alone that happens once in C(2n, n) / 2
times with n runs each (every order of 2n values is as likely): once in 10 with 3, in 126 with 5.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb, inf
from statistics import fmean
from typing import Any

from filesystem.fs_cache import agreed
from measurement import papers, tables

QUANTITIES = {
    "images_per_second": "images/s",
    "mb_per_second": "MB/s",
    "gbit_per_second": "Gbit/s",
    "bus_gb_per_second": "GB/s",
}
"""What a part's rate may be called, and its unit; of several the first that it has."""
_GENERATION = re.compile(r"\b[A-Z]{1,2}[0-9]{1,3}[A-Z]?\b")
_LINKS = {"SXM": "NVLink", "PCIE": "PCIe"}
_RUN = re.compile(r",? *run \d+$")
_TIMES = 2.5
"""From this ratio on "so many times" is plainer than a gain in per cent."""


class ComparisonError(ValueError):
    """These cannot be compared; the message says why and what to do."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str
    values: Mapping[str, tuple[float, ...]]
    """What was measured, and what each run of it reached."""
    cards: tuple[str, ...] = ()
    """The kinds of GPU that it was measured on."""
    fs_cache: bool | None = None
    """Whether FS-Cache kept what was read; ``None``: not known, or nothing was read so."""

    @property
    def generation(self) -> str | None:
        """The kind of GPU, without how it is connected; ``None`` where there are several or none.

        >>> Side("a", {}, ("Tesla V100-SXM2-16GB",)).generation
        'V100'
        """
        found = {match[0] for card in self.cards if (match := _GENERATION.search(card))}
        return found.pop() if len(found) == 1 else None

    @property
    def link(self) -> str | None:
        """How its GPUs are connected, as their names say it: NVLink (SXM) or PCIe."""
        found = {
            link for card in self.cards for word, link in _LINKS.items() if word in card.upper()
        }
        return found.pop() if len(found) == 1 else None


@dataclass(frozen=True)
class Row:
    """What was measured on both sides."""

    what: str
    first: tuple[float, ...]
    other: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How many times as fast the other side is, by the means."""
        return _over(fmean(self.other), fmean(self.first))

    @property
    def gain(self) -> str:
        """By how much the other side is faster, as the papers say it: per cent, or how many times.

        >>> Row("a", (100.0,), (126.0,)).gain, Row("a", (100.0,), (370.0,)).gain
        ('+26 %', '3.7 times')
        """
        if self.ratio == inf:
            return "from 0"
        if self.ratio >= _TIMES:
            return f"{self.ratio:.1f} times"
        return f"{100 * (self.ratio - 1):+.3g} %"

    @property
    def spread(self) -> tuple[float, float] | None:
        """The lowest and highest ratio of two runs; ``None`` where a side has one run only."""
        if len(self.first) < 2 or len(self.other) < 2:
            return None
        return (
            _over(min(self.other), max(self.first)),
            _over(max(self.other), min(self.first)),
        )

    @property
    def verdict(self) -> str:
        """Whether there is a difference."""
        if self.spread is None:
            return "one run: the noise is not known"
        low, high = self.spread
        if low <= 1 <= high:
            return "within the noise"
        return f"{'faster' if low > 1 else 'slower'}, by chance 1 time in {self.permutations}"

    @property
    def permutations(self) -> int:
        """In how many cases that differ by nothing one is seen in which the ranges do not touch."""
        return comb(len(self.first) + len(self.other), len(self.first)) // 2

    @property
    def differs(self) -> bool:
        """Whether the ranges of the runs do not touch."""
        return self.spread is not None and not self.spread[0] <= 1 <= self.spread[1]


def _over(other: float, first: float) -> float:
    """Divide two rates, of which the first is 0 where storage hung."""
    if first:
        return other / first
    return inf if other else 1.0


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
    kept: dict[str, set[bool | None]] = {}
    for part in summary["parts"]:
        if part.get(quantity) is None:
            continue
        place, what = _place(part), _RUN.sub("", str(part["name"]))
        if place:
            number = part["clients"]
            what = f"{part['load']}, {number} client{'' if number == 1 else 's'}"
        one = f"{name}: {place}" if place else name
        found.setdefault(one, {}).setdefault(what, []).append(float(part[quantity]))
        kept.setdefault(one, set()).add(part.get("fs_cache"))
    gpus = [gpu["name"] for host in summary.get("hosts", []) for gpu in host["gpus"]]
    cards = tuple(dict.fromkeys(gpus))
    return [
        Side(
            one,
            {what: tuple(values) for what, values in side.items()},
            cards,
            agreed(kept[one]),
        )
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


def markdown(
    unit: str, comparisons: Mapping[tuple[str, str], Sequence[Row]], measured: Sequence[Side] = ()
) -> str:
    """Show comparisons as a table, and below it what the papers found of such differences.

    ``measured``: the sides, of which the first is the one that all others are compared with.
    """
    lines = [
        f"| part | first | {unit} | other | {unit} | ratio | gain | of two runs | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (first, other), rows in comparisons.items():
        for row in rows:
            spread = "" if row.spread is None else f"{row.spread[0]:.3f} to {row.spread[1]:.3f}"
            lines.append(
                f"| {row.what} | {first} | {fmean(row.first):,.5g} | {other} | "
                f"{fmean(row.other):,.5g} | {row.ratio:.3f} | {row.gain} | {spread} | "
                f"{row.verdict} |"
            )
    return "\n".join([*lines, "", *_cards(measured), *_fs_cache(measured), *_papers(unit)])


def _cards(measured: Sequence[Side]) -> Iterator[str]:
    """Say what the papers found of other cards, where the sides are of different ones."""
    for other in measured[1:]:
        kinds = (measured[0].generation, other.generation)
        if None not in kinds and kinds[0] != kinds[1]:
            gains = ", ".join(
                f"{100 * one.value:.0f} % ({one.framework}, {one.precision}, batch {one.batch})"
                for one in papers.V100_OVER_P100
            )
            yield (
                f"- {other.name} has {kinds[1]}, {measured[0].name} has {kinds[0]}. The papers: "
                f"V100 over P100 in ResNet-50's training {gains}; in inference "
                f"{papers.V100_TIMES_P100_IN_INFERENCE:g} times."
            )
        links = (measured[0].link, other.link)
        if None not in links and links[0] != links[1]:
            low, high = papers.NVLINK_OVER_PCIE
            access = ", ".join(
                f"{times:g} times with {name}" for name, times in papers.PEER_ACCESS_TIMES.items()
            )
            yield (
                f"- {other.name} is on {links[1]}, {measured[0].name} on {links[0]}. The papers: "
                f"NVLink over PCIe {100 * low:.0f} to {100 * high:.0f} % in ResNet-50's training; "
                f"peer-to-peer access alone, of 4 GPUs with fp32, {access}."
            )


def _fs_cache(measured: Sequence[Side]) -> Iterator[str]:
    """Say of which sides the nodes kept on their own disks what they read."""
    said = [(side.name, tables.fs_cache(side.fs_cache)) for side in measured]
    if told := [f"{name}: {words}" for name, words in said if words]:
        yield f"- {'; '.join(told)}."


def _papers(unit: str) -> list[str]:
    """Say what the papers found, of those differences that have a row there."""
    if unit != "images/s":
        return []
    formats = [
        f"{model} {low:g} times" if low == high else f"{model} {low:g} to {high:g} times"
        for model, (low, high) in papers.TFRECORD_OVER_JPEG.items()
    ]
    return [
        f"- The papers' containers were within {papers.MOST_CONTAINER_LOSS:.1%} of bare metal, in "
        "either direction.",
        f"- Their TFRecord files against JPEG files: {', '.join(formats)} as fast.",
    ]
