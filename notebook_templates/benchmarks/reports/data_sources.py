"""The same trainings from other storages, formats and sizes of the data, beside each other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from measurement import papers, result, tables
from reports import drawing, training

Summary = Mapping[str, Any]
DataSets = Mapping[str, Mapping[str, str]]
"""Folders by storage, and by what the data set is there: ``{"NAS": {"JPEG": "~/isilon/jpeg"}}``."""

HEAD = (
    "network", "framework", "precision", "batch", "storage", "data set", "images/s",
    "variation of runs", "of first",
)  # fmt: skip


@dataclass(frozen=True)
class DataSource:
    """Where a training's data comes from."""

    storage: str
    data_set: str
    folder: str

    @property
    def name(self) -> str:
        """What its runs are kept under: letters, digits and dashes."""
        words = f"{self.storage} {self.data_set}"
        return "-".join("".join(c if c.isalnum() else " " for c in words).split())


@dataclass(frozen=True)
class SourceSpeed:
    """How fast a network was trained from a source."""

    source: DataSource
    model: str
    software: str
    """The framework and its version."""
    precision: str
    batch: int
    """Of each process."""
    images_per_second: float
    run_variation: float | None
    fastest: float
    slowest: float
    fs_cache: bool | None


def sources(data_sets: DataSets) -> list[DataSource]:
    """Return all of them; raise ValueError for two whose runs would be kept in one folder."""
    found = [
        DataSource(storage, data_set, str(Path(folder).expanduser()))
        for storage, folders in data_sets.items()
        for data_set, folder in folders.items()
    ]
    names = [source.name for source in found]
    for source in found:
        if not source.name or names.count(source.name) > 1:
            raise ValueError(
                f"data_sets: {source.storage!r}, {source.data_set!r} needs another name, in "
                "letters and digits"
            )
    return found


def finished(
    base: Path,
    source: DataSource,
    transport: Mapping[str, object] = MappingProxyType({}),
    **settings: object,
) -> Summary | None:
    """Return the newest finished run of a source with these settings, if there is one.

    ``transport``: variables that it had, perhaps among others that the site sets. An option that
    came with an upgrade is in no older result: there it was left empty.
    """
    wanted = {"data": source.folder, **settings}
    for summary in result.summaries(base / source.name, "training")[::-1]:
        had = summary["configuration"]
        told = had.get("transport", {})
        if all(had.get(name, "") == value for name, value in wanted.items()) and all(
            told.get(name) == str(value) for name, value in transport.items()
        ):
            return summary
    return None


def speeds(found: Mapping[DataSource, Summary]) -> list[SourceSpeed]:
    """Return how fast each network was, source by source in their order."""
    measured = []
    for source, summary in found.items():
        runs: dict[tuple[str, str], list[float]] = {}
        for part in summary["parts"]:
            runs.setdefault((part["model"], part["precision"]), []).append(
                part["images_per_second"]
            )
        measured += [
            SourceSpeed(
                source,
                row["model"],
                row["software"],
                row["precision"],
                row["batch"],
                row["images_per_second"],
                row["run_variation"],
                max(runs[row["model"], row["precision"]]),
                min(runs[row["model"], row["precision"]]),
                row["fs_cache"],
            )
            for row in training.rows([summary])
        ]
    return measured


def markdown(found: Mapping[DataSource, Summary]) -> str:
    """Return a table, network by network; each is compared with its first source.

    Below it are the papers' ratios of formats, of the same networks.
    """
    measured = speeds(found)
    rows = []
    for kind in _kinds(measured):
        mine = [speed for speed in measured if (speed.model, speed.precision) == kind]
        rows += [
            [
                speed.model,
                speed.software,
                speed.precision,
                str(speed.batch),
                ", ".join(filter(None, (speed.source.storage, tables.fs_cache(speed.fs_cache)))),
                speed.source.data_set,
                tables.number(speed.images_per_second),
                tables.variation(speed.run_variation),
                tables.percentage(speed.images_per_second / mine[0].images_per_second),
            ]
            for speed in mine
        ]
    return tables.markdown(HEAD, [*rows, *_papers(measured)])


def _papers(measured: Sequence[SourceSpeed]) -> Iterator[list[str]]:
    """Give how much faster the papers trained these networks from TFRecord than from JPEG files."""
    for model in dict.fromkeys(speed.model for speed in measured):
        if model in papers.TFRECORD_OVER_JPEG:
            ratios = sorted(set(papers.TFRECORD_OVER_JPEG[model]))
            of_first = " to ".join(tables.percentage(ratio) for ratio in ratios)
            yield [model, "", "", "", "papers", "TFRecord, of JPEG", "", "", of_first]


def figure(found: Mapping[DataSource, Summary]) -> bytes:
    """Draw a bar for each source, storage by storage, a panel for each network; returns a PNG.

    The line on a bar reaches from the slowest run to the fastest.
    """
    measured = speeds(found)
    storages = list(dict.fromkeys(source.storage for source in found))
    kinds = list(dict.fromkeys(source.data_set for source in found))
    panels = _kinds(measured)
    picture = drawing.new(9, 3.2 * len(panels))
    width = 0.8 / len(kinds)
    axes = picture.subplots(len(panels), squeeze=False)[:, 0]
    for panel, axis in zip(panels, axes, strict=True):
        mine = [speed for speed in measured if (speed.model, speed.precision) == panel]
        for number, kind in enumerate(kinds):
            bars = [speed for speed in mine if speed.source.data_set == kind]
            heights = [speed.images_per_second for speed in bars]
            spread = [
                [speed.images_per_second - speed.slowest for speed in bars],
                [speed.fastest - speed.images_per_second for speed in bars],
            ]
            left = [
                storages.index(speed.source.storage) + (number - (len(kinds) - 1) / 2) * width
                for speed in bars
            ]
            color = drawing.OWN[number % len(drawing.OWN)]
            drawn = axis.bar(
                left, heights, width * 0.92, yerr=spread, capsize=3, label=kind, color=color
            )
            axis.bar_label(drawn, [tables.number(height) for height in heights], fontsize=8)
        axis.set_xticks(range(len(storages)), storages)
        drawing.scale(axis, "images/s", [speed.images_per_second for speed in mine])
        axis.margins(y=0.12)
        axis.set_title(" ".join(panel), fontsize=10)
        axis.grid(axis="y", alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", fontsize=8, ncols=4)
    return drawing.png(picture)


def _kinds(measured: Sequence[SourceSpeed]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((speed.model, speed.precision) for speed in measured))
