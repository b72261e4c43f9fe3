"""The finished measurements of trainings, with the papers' figures beside them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from architectures.models import PRECISIONS, SIZES
from measurement import papers, tables
from reports import drawing
from trials.trial import PARTS_OF_A_STEP

Row = Mapping[str, Any]

HEAD = (
    "network", "precision", "on", "processes", "batch", "images/s", "variation of runs",
    "of steps", "data", "forward and backward", "all-reduce", "optimiser",
)  # fmt: skip


def rows(summaries: Sequence[Row]) -> list[Row]:
    """Return the trainings of all runs; of those with the same settings, the newest."""
    found: dict[tuple[object, ...], Row] = {}
    for summary in summaries:
        for row in summary["figures"]["trainings"]:
            data, told = summary["configuration"]["data"], tables.transport(summary)
            kind = ("model", "precision", "processes", "nodes", "batch", "size", "device")
            found[(*(row[name] for name in kind), data, told)] = {
                **row,
                "data": data,
                "transport": told,
            }
    order = {model: number for number, model in enumerate(SIZES)}
    return sorted(found.values(), key=lambda row: (order[row["model"]], row["processes"]))


def markdown(summaries: Sequence[Row]) -> str:
    """Return a table: one's own figures, and below them the papers' of the same networks."""
    own = rows(summaries)
    theirs = [
        [model, "mixed", f"papers: {who}", str(gpus), "", tables.number(speed)]
        for model in dict.fromkeys(row["model"] for row in own)
        for who, speeds in papers.trainings(model).items()
        for gpus, speed in speeds.items()
    ]
    table = tables.markdown(HEAD, [*map(_cells, own), *theirs])
    return "\n".join([table, "", *_gains(own), *_verdicts(own), *_caches(own), *_readings(own)])


def _cells(row: Row) -> list[str]:
    where = row["device"] if row["data"] == "synthetic" else f"{row['device']}, {row['data']}"
    where += row["transport"]
    return [
        row["model"],
        row["precision"],
        where,
        str(row["processes"]),
        str(row["batch"]),
        tables.number(row["images_per_second"]),
        tables.variation(row["run_variation"]),
        tables.variation(row["step_variation"]),
        *(tables.share(row["shares"][name]) for name in PARTS_OF_A_STEP),
    ]


def _readings(own: Sequence[Row]) -> Iterator[str]:
    """Say how fast the papers' storage was read, for networks that were measured with files."""
    from_files = {row["model"] for row in own if row["data"] != "synthetic"}
    for one in papers.READINGS:
        if one.model in from_files:
            yield (
                f"- The papers read {one.megabits_per_second / 8:,.0f} MB/s for {one.model} on a "
                f"node of 4 GPUs, {one.images_per_second:,} images/s ({papers.MB_PER_IMAGE} MB)."
            )


def _caches(own: Sequence[Row]) -> Iterator[str]:
    """Say what caches had to do with trainings from files."""
    for row in own:
        hits = row["expected_hit_rate"]
        if hits is None:
            continue
        said = "caches dropped before each run"
        if not row["caches_dropped"]:
            said = f"caches not dropped: up to {tables.share(hits)} of reads can come from memory"
        yield f"- {row['model']} {row['precision']} on {row['processes']}, {row['data']}: {said}."


def _verdicts(own: Sequence[Row]) -> Iterator[str]:
    """Say what held each training up."""
    for row in own:
        if "verdict" in row:
            yield f"- {row['model']} {row['precision']} on {row['processes']}: {row['verdict']}"


def _gains(own: Sequence[Row]) -> Iterator[str]:
    """Say what 16 bits give over fp32, for networks that were measured with both."""
    low, high = papers.MIXED_OVER_FP32
    for row in own:
        same = ("model", "processes", "nodes", "device", "data", "size", "transport")
        full = [
            one["images_per_second"]
            for one in own
            if one["precision"] == "fp32" and all(one[name] == row[name] for name in same)
        ]
        if PRECISIONS[row["precision"]] > 1 and full:
            gain = row["images_per_second"] / full[0] - 1
            yield (
                f"- {row['model']} on {row['processes']}: {row['precision']} gives {gain:+.0%} "
                f"images/s over fp32; the papers {low:+.0%} to {high:+.0%}."
            )


def figure(summaries: Sequence[Row]) -> bytes:
    """Draw images/s by network, with the papers' points; returns a PNG."""
    own = rows(summaries)
    models = list(dict.fromkeys(row["model"] for row in own))
    picture = drawing.new(9, 4.5)
    axis = picture.subplots()
    kinds = list(dict.fromkeys(_kind(row) for row in own))
    width = 0.7 / len(kinds)
    for number, kind in enumerate(kinds):
        mine = [row for row in own if _kind(row) == kind]
        left = [
            models.index(row["model"]) + (number - (len(kinds) - 1) / 2) * width for row in mine
        ]
        speeds = [row["images_per_second"] for row in mine]
        bars = axis.bar(left, speeds, width * 0.92, label=kind, color=drawing.OWN[number % 4])
        axis.bar_label(bars, [tables.number(speed) for speed in speeds], fontsize=8)
    _papers_points(axis, models)
    axis.set_xticks(range(len(models)), models)
    drawing.scale(axis, "images/s", [*_speeds(own), *_papers_speeds(models)])
    axis.grid(axis="y", alpha=0.3)
    picture.legend(loc="outside lower center", fontsize=8, ncols=3)
    return drawing.png(picture)


def _speeds(own: Sequence[Row]) -> list[float]:
    return [row["images_per_second"] for row in own]


def _papers_speeds(models: Sequence[str]) -> list[float]:
    return [row.value for row in papers.TRAININGS if row.row in models]


def _kind(row: Row) -> str:
    many = "process" if row["processes"] == 1 else "processes"
    return f"{row['precision']}, {row['processes']} {many}, {row['device']}{row['transport']}"


def _papers_points(axis: Any, models: Sequence[str]) -> None:
    label = "papers, by their GPUs"
    for place, model in enumerate(models):
        for speeds in papers.trainings(model).values():
            for gpus, speed in speeds.items():
                axis.plot(place + 0.4, speed, "D", color=drawing.PAPERS, ms=3, label=label)
                axis.annotate(
                    str(gpus),
                    (place + 0.4, speed),
                    xytext=(4, -2),
                    textcoords="offset points",
                    fontsize=6,
                    color=drawing.PAPERS,
                )
                label = "_"
