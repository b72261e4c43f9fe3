"""The finished measurements of scaling, with the papers' figures beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from measurement import papers, tables
from reports import drawing
from trials.frameworks import PYTORCH, software, with_other
from trials.trial import PARTS_OF_A_STEP

Row = Mapping[str, Any]

HEAD = (
    "what", "framework", "nodes", "processes", "batch", "images/s", "speed-up", "efficiency",
    "variation of runs", "data", "forward and backward", "all-reduce", "optimiser",
)  # fmt: skip
COLOURS = dict(zip(PARTS_OF_A_STEP, ("#d9a441", "#1f5fa8", "#b03a48", "#7a9a5b"), strict=True))
# Of steps that were timed as a whole.
WHOLE = {"data": COLOURS["data"], "training": "#5f7f9f"}


def name_of(summary: Row) -> str:
    """Say in a few words what was measured, and with which framework if it was not PyTorch."""
    first = summary["figures"]["points"][0]
    return _what(summary, with_other(first.get("framework", PYTORCH.name)))


def _what(summary: Row, with_: str = "") -> str:
    settings, first = summary["configuration"], summary["figures"]["points"][0]
    ended = summary["date"][:16].replace("T", " ")
    told = tables.transport(summary)
    what = f"{settings['model']} {settings['precision']}{with_}"
    kept = tables.fs_cache(first.get("fs_cache"))
    return f"{', '.join(filter(None, (what, first['device'], kept, ended)))}{told}"


@dataclass(frozen=True)
class PaperSpeedUp:
    """How many times the throughput of one GPU a training of the papers reached on several."""

    point: papers.Figure
    times: float

    @property
    def cells(self) -> list[str]:
        """The row of the table, as far as the papers say it."""
        parts = (self.point.row, self.point.setup, self.point.precision)
        return [
            f"papers: {', '.join(part for part in parts if part)}",
            self.point.framework,
            str(self.point.nodes or ""),
            str(self.point.gpus),
            str(self.point.batch or ""),
            "",
            f"{self.times:.2f}",
            tables.percentage(self.times / self.point.gpus),
        ]


def papers_points() -> list[PaperSpeedUp]:
    """Return the papers' speed-ups: those that they name, and those that follow from images/s."""
    alone = {_same(one): one.value for one in papers.TRAININGS if one.gpus == 1}
    return [PaperSpeedUp(one, one.value) for one in papers.SPEED_UPS] + [
        PaperSpeedUp(one, one.value / alone[_same(one)])
        for one in papers.TRAININGS
        if one.gpus > 1 and _same(one) in alone
    ]


def _same(point: papers.Figure) -> tuple[object, ...]:
    """Return what trainings have in common that differ in their GPUs alone."""
    return (point.row, point.who, point.precision, point.batch)


def markdown(summaries: Sequence[Row]) -> str:
    """Return a table: one's own points, and below them the papers'; and their largest run."""
    own = [
        [_what(summary), software(point, summary.get("versions", {})), *_cells(point)]
        for summary in summaries
        for point in summary["figures"]["points"]
    ]
    theirs = [one.cells for one in papers_points()]
    low, high = papers.LINEAR
    return (
        f"{tables.markdown(HEAD, [*own, *theirs])}\n\n"
        f"The papers' throughput also grew in proportion from {low} to {high} GPUs, in nodes of 8."
    )


def _cells(point: Row) -> list[str]:
    return [
        str(point["nodes"]),
        str(point["processes"]),
        str(point["batch"]),
        tables.number(point["images_per_second"]),
        f"{point['speed_up']:.2f}",
        tables.percentage(point["efficiency"]),
        tables.variation(point["run_variation"]),
        *tables.parts(point["shares"], PARTS_OF_A_STEP),
    ]


def figure(summaries: Sequence[Row]) -> bytes:
    """Draw speed-ups, and where the newest run's time went; returns a PNG."""
    picture = drawing.new(10, 4)
    left, right = picture.subplots(1, 2)
    _draw_speed_ups(left, summaries)
    _draw_shares(right, summaries[-1])
    return drawing.png(picture)


def _draw_speed_ups(axis: Any, summaries: Sequence[Row]) -> None:
    others = papers_points()
    for number, summary in enumerate(summaries):
        points = summary["figures"]["points"]
        counts, times = ([point[name] for point in points] for name in ("processes", "speed_up"))
        colour = drawing.OWN[number % len(drawing.OWN)]
        axis.plot(counts, times, "o-", color=colour, label=name_of(summary))
    gpus, times = [one.point.gpus for one in others], [one.times for one in others]
    most = max(gpus + counts)
    axis.plot([1, most], [1, most], "--", color="#bbbbbb", lw=1, label="ideal")
    axis.plot(gpus, times, "D", color=drawing.PAPERS, ms=4, mfc="none", label="papers")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    axis.xaxis.set_major_formatter("{x:.0f}")
    axis.yaxis.set_major_formatter("{x:.3g}")
    axis.set_xlabel("processes, or GPUs")
    axis.set_ylabel("speed-up")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7)


def _draw_shares(axis: Any, summary: Row) -> None:
    points = summary["figures"]["points"]
    names = [f"{point['processes']}\non {point['nodes']}" for point in points]
    floor = [0.0] * len(points)
    colours = WHOLE if "training" in points[0]["shares"] else COLOURS
    for part, colour in colours.items():
        shares = [100 * point["shares"][part] for point in points]
        label = part.replace("_", " and ").replace("all and reduce", "all-reduce")
        axis.bar(names, shares, 0.6, bottom=floor, color=colour, label=label)
        floor = [low + share for low, share in zip(floor, shares, strict=True)]
    axis.set_ylabel("% of a step")
    axis.set_xlabel("processes, on so many nodes")
    axis.set_title(name_of(summary), fontsize=8)
    axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=len(colours))
