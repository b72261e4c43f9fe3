#!/usr/bin/env python
"""All that was measured of a cluster, on one page: Markdown, and a figure for each benchmark.

    python cluster_report.py --runs ~/logs --into ~/cluster-report

Takes the finished runs below a folder; of a benchmark without any nothing is said.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measurement import result
from reports import comparison, inference, interconnect, network, scaling, storage, training, usage

Summary = Mapping[str, Any]


@dataclass(frozen=True)
class Section:
    """What a page says of a benchmark's runs."""

    benchmark: str
    markdown: Callable[[Sequence[Summary]], str]
    figure: Callable[[Sequence[Summary]], bytes]

    def pictures(self, runs: Sequence[Summary]) -> dict[str, bytes]:
        """Draw the results, and how busy the newest run's nodes were; nothing without a speed."""
        try:
            use = usage.picture(runs[-1])
        except comparison.ComparisonError:
            return {}
        return {self.benchmark: self.figure(runs), f"{self.benchmark}-use": use}


SECTIONS = (
    Section("training", training.markdown, training.figure),
    Section("scaling", scaling.markdown, scaling.figure),
    Section("inference", inference.markdown, inference.figure),
    Section(
        "storage",
        lambda found: storage.markdown(found[-1]),
        lambda found: storage.figure(found[-1]),
    ),
    Section(
        "network",
        lambda found: network.markdown(found[-1]),
        lambda found: network.figure(found[-1]),
    ),
    Section("interconnect", interconnect.markdown, interconnect.figure),
)


@dataclass(frozen=True)
class ReportSection:
    """What is said of one benchmark, below its pictures."""

    title: str
    pictures: Mapping[str, bytes]
    """PNGs, by the names of their files."""
    words: str

    @property
    def markdown(self) -> str:
        """The part as it stands in a file, beside its pictures."""
        shown = [f"![{self.title}]({name})" for name in self.pictures]
        return "\n".join([f"## {self.title}", "", *shown, "", self.words, ""])


@dataclass(frozen=True)
class Page:
    """What was measured."""

    head: str
    """The nodes and the versions."""
    parts: Sequence[ReportSection]
    missing: Sequence[str]
    """Benchmarks that have no finished run."""
    title: str = "Measurements of this cluster"

    def write(self, file: Path) -> None:
        """Write the page into a file, and the pictures where it looks for them."""
        file.parent.mkdir(parents=True, exist_ok=True)
        for part in self.parts:
            for name, picture in part.pictures.items():
                (file.parent / name).write_bytes(picture)
        parts = [part.markdown for part in self.parts]
        text = "\n".join([f"# {self.title}", "", self.head, *parts])
        file.write_text(text, encoding="utf-8")


def page(base: Path, before: str = "") -> Page:
    """Put the finished runs below a folder on one page.

    ``before``: what the names of the pictures' files begin with; it may lead to another folder.
    Raises `ResultError` where nothing below ``base`` came to its end.
    """
    every = [(section, result.summaries(base, section.benchmark)) for section in SECTIONS]
    found = [(section, runs) for section, runs in every if runs]
    if not found:
        raise result.ResultError(f"{base} has no finished measurement: no summary.json below it")
    newest = max((runs[-1] for _, runs in found), key=lambda run: str(run["date"]))
    return Page(
        _machines(newest),
        [_part(section, runs, before) for section, runs in found],
        [section.benchmark for section, runs in every if not runs],
    )


def _part(section: Section, runs: Sequence[Summary], before: str) -> ReportSection:
    commands = [f"- {run['date']}: `{run['command']}`" for run in runs]
    return ReportSection(
        section.benchmark.capitalize(),
        {f"{before}{name}.png": drawn for name, drawn in section.pictures(runs).items()},
        "\n".join([section.markdown(runs), "", "Measured with:", "", *commands]),
    )


def _machines(summary: Summary) -> str:
    lines = [f"Nodes of the newest measurement, {summary['date']}:", ""]
    for host in summary["hosts"]:
        gpus = ", ".join(gpu["name"] for gpu in host["gpus"]) or "no GPU"
        memory = host["memory_mb"] / 1024
        cores = f"{host['cores']} of its processors"
        lines.append(f"- {host['name']}: {host['processor']}, {cores}, {memory:,.0f} GiB, {gpus}")
    versions = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    return "\n".join([*lines, "", f"Versions: {versions}.", ""])


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=Path, required=True, help="folder with the runs")
    parser.add_argument("--into", type=Path, required=True, help="folder for the page")
    given = parser.parse_args()
    file = given.into.expanduser() / "README.md"
    try:
        page(given.runs.expanduser()).write(file)
    except result.ResultError as error:
        sys.exit(str(error))
    print(file)


if __name__ == "__main__":
    main()
