"""The finished measurements of trainings, with the papers' figures beside them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from architectures.models import PRECISIONS, SIZES
from measurement import papers, tables
from reports import drawing
from reports.nas_reads import nas_reads
from trials.frameworks import FRAMEWORKS, GONE, PYTORCH, software, with_other
from trials.trial import PARTS_OF_A_STEP

Row = Mapping[str, Any]

HEAD = (
    "network", "framework", "precision", "on", "processes", "batch", "images/s",
    "variation of runs", "of steps", "data", "forward and backward", "all-reduce", "optimiser",
)  # fmt: skip


def rows(summaries: Sequence[Row]) -> list[Row]:
    """Return the trainings of all runs; of those with the same settings, the newest."""
    found: dict[tuple[object, ...], Row] = {}
    for summary in summaries:
        for row in summary["figures"]["trainings"]:
            whole = {
                # What a result of an earlier version does not say of its trainings.
                "framework": PYTORCH.name,
                "fs_cache": None,
                **row,
                "software": software(row, summary.get("versions", {})),
                "data": _source(summary["configuration"]),
                "nas_reads": nas_reads(summary.get("nas", ()), _runs(summary, row)),
                "transport": tables.transport(summary) + _options(summary["configuration"]),
            }
            found[tuple(whole[name] for name in _KIND)] = whole
    order = {model: number for number, model in enumerate(SIZES)}
    return sorted(found.values(), key=lambda row: (order[row["model"]], row["processes"]))


def _source(configuration: Row) -> str:
    """Say where images come from: of several mounts a training is another one than of one."""
    data, mounts = str(configuration["data"]), str(configuration.get("mounts", ""))
    places = ", ".join(filter(None, mounts.split(",")))
    return f"{data} on {places}" if places and data != "synthetic" else data


def _options(configuration: Row) -> str:
    """Say what else makes a training another one than the plain one of that name."""
    told = {
        "compiled": configuration.get("compile") == "yes",
        "contiguous": configuration.get("layout") == "contiguous_format",
        f"in {str(configuration.get('image', '')).rpartition('/')[2]}": configuration.get("image"),
    }
    return "".join(f", {words}" for words, is_so in told.items() if is_so)


def _runs(summary: Row, row: Row) -> list[Row]:
    """Return the parts that a training's means are of."""
    return [
        part
        for part in summary.get("parts", ())
        if all(part[name] == row[name] for name in ("model", "precision"))
        and part.get("framework", PYTORCH.name) == row.get("framework", PYTORCH.name)
    ]


# What trainings have in common that are compared.
_SAME = ("model", "processes", "nodes", "device", "data", "fs_cache", "size", "transport")
_KIND = (*_SAME, "framework", "precision", "batch")


def not_measured(summaries: Sequence[Row]) -> list[Row]:
    """Return what was to be measured and was not, with the newest reason; without what is there."""
    kind = ("framework", "model", "precision")
    told = {
        tuple(row[name] for name in kind): row
        for summary in summaries
        for row in summary["figures"].get("not_measured", ())
    }
    for row in rows(summaries):
        told.pop(tuple(row[name] for name in kind), None)
    return list(told.values())


def markdown(summaries: Sequence[Row]) -> str:
    """Return a table: one's own figures, and below them the papers' of the same networks."""
    own, lacking = rows(summaries), not_measured(summaries)
    reasons = [
        [row["model"], _title(row), row["precision"], f"not measured: {row['reason']}"]
        for row in lacking
    ]
    theirs = [
        [
            model,
            figure.framework,
            figure.precision,
            f"papers: {figure.setup}",
            str(figure.gpus),
            str(figure.batch or ""),
            tables.number(figure.value),
        ]
        for model in dict.fromkeys(row["model"] for row in [*own, *lacking])
        for figure in papers.of_network(model)
    ]
    table = tables.markdown(HEAD, [*map(_cells, own), *reasons, *theirs])
    of_storage = [*_caches(own), *_readings(own), *_disks(own)]
    told = [*_beside(own), *_gains(own), *_verdicts(own), *of_storage]
    return "\n".join([table, "", _gone(), *told])


def _title(row: Row) -> str:
    return FRAMEWORKS[row["framework"]].title


def _named(row: Row) -> str:
    """Say which training a line is about."""
    with_ = with_other(row["framework"])
    return f"{row['model']} {row['precision']} on {row['processes']}{with_}"


def _cells(row: Row) -> list[str]:
    where = ", ".join(filter(None, (row["device"], _data(row), tables.fs_cache(row["fs_cache"]))))
    where += row["transport"]
    return [
        row["model"],
        row["software"],
        row["precision"],
        where,
        str(row["processes"]),
        str(row["batch"]),
        tables.number(row["images_per_second"]),
        tables.variation(row["run_variation"]),
        tables.variation(row["step_variation"]),
        *tables.parts(row["shares"], PARTS_OF_A_STEP),
    ]


def _data(row: Row) -> str:
    return "" if row["data"] == "synthetic" else str(row["data"])


def _gone() -> str:
    """Say which frameworks nobody can measure any more."""
    said = ", ".join(f"{name} ({since})" for name, since in GONE.items())
    return (
        f"- Frameworks of the papers' time that are gone: {said}. "
        "MXNet was retired by Apache in 2023; 1.9.1 is its last version."
    )


def _beside(own: Sequence[Row]) -> Iterator[str]:
    """Say what other frameworks reach of PyTorch's throughput, here and in the papers."""
    for row in own:
        ours = [one for one in own if one["framework"] == PYTORCH.name and _is_same(one, row)]
        if row["framework"] == PYTORCH.name or not ours:
            continue
        times = row["images_per_second"] / ours[0]["images_per_second"]
        said = f"- {_named(row)}: {times:.2f} times PyTorch's images/s"
        theirs = _papers_ratios(row["model"], _title(row))
        if theirs:
            said += f"; the papers {min(theirs):.2f} to {max(theirs):.2f} times (mixed precision)"
        yield f"{said}."


def _is_same(one: Row, other: Row) -> bool:
    """Whether two trainings differ in their framework at most."""
    return all(one[name] == other[name] for name in (*_SAME, "precision", "batch"))


def _papers_ratios(model: str, title: str) -> list[float]:
    """Return a framework's images/s over PyTorch's in the papers, on the same GPUs."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for figure in papers.of_network(model):
        found.setdefault((figure.card, figure.gpus), {})[figure.framework] = figure.value
    return [
        speeds[title] / speeds[PYTORCH.title]
        for speeds in found.values()
        if {title, PYTORCH.title} <= speeds.keys()
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


def _disks(own: Sequence[Row]) -> Iterator[str]:
    """Say what the NAS's disks read during trainings from files, where the NAS was asked."""
    of_papers = {one.model: one for one in papers.READINGS}
    for row in own:
        found = row["nas_reads"]
        if found is None or row["data"] == "synthetic":
            continue
        said = f"the NAS's disks served {tables.number(found.per_second)} reads/s"
        if found.kib is not None:
            said += f" of {tables.number(found.kib)} KiB on average"
        if one := of_papers.get(row["model"]):
            follows = one.megabits_per_second / 8 / one.mb_a_disk_read
            said += (
                f"; the papers print {one.k_disk_reads_per_second} K reads/s of "
                f"{one.mb_a_disk_read:g} MB, but their throughput makes {follows:.0f} of these"
            )
        yield f"- {_named(row)}, {row['data']}: {said}."


def _caches(own: Sequence[Row]) -> Iterator[str]:
    """Say what caches had to do with trainings from files."""
    for row in own:
        hits = row["expected_hit_rate"]
        if hits is None:
            continue
        said = "caches dropped before each run"
        if not row["caches_dropped"]:
            said = (
                f"caches not dropped: up to {tables.percentage(hits)} of reads can come from memory"
            )
        if row["fs_cache"]:
            said += "; FS-Cache on: copies on the nodes' disks are not dropped"
        if flushed := row.get("nas_flushed_by"):
            said += f"; the NAS's flushed before each by {flushed}"
        yield f"- {_named(row)}, {row['data']}: {said}."


def _verdicts(own: Sequence[Row]) -> Iterator[str]:
    """Say what held each training up."""
    for row in own:
        if "verdict" in row:
            yield f"- {_named(row)}: {row['verdict']}"


def _gains(own: Sequence[Row]) -> Iterator[str]:
    """Say what 16 bits give over fp32, for networks that were measured with both."""
    low, high = papers.MIXED_OVER_FP32
    for row in own:
        same = (*_SAME, "framework")
        full = [
            one
            for one in own
            if one["precision"] == "fp32" and all(one[name] == row[name] for name in same)
        ]
        if len(full) > 1:  # of several batches
            of_batch = row["batch"] / PRECISIONS[row["precision"]]
            full = [one for one in full if one["batch"] == of_batch]
        if PRECISIONS[row["precision"]] > 1 and full:
            gain = row["images_per_second"] / full[0]["images_per_second"] - 1
            said = (
                f"- {row['model']} on {row['processes']}{with_other(row['framework'])}: "
                f"{row['precision']} gives {gain:+.0%} images/s over fp32"
            )
            # The papers' are ResNet-50's (the guide's Figure 5).
            if row["model"].startswith("resnet50"):
                said += f"; the papers {low:+.0%} to {high:+.0%}"
            yield f"{said}."


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
        colour = drawing.OWN[number % len(drawing.OWN)]
        # Beyond the colours, a pattern.
        pattern = "//" * (number // len(drawing.OWN))
        bars = axis.bar(left, speeds, width * 0.92, label=kind, color=colour, hatch=pattern)
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
    return [figure.value for model in models for figure in papers.of_network(model)]


def _kind(row: Row) -> str:
    many = "process" if row["processes"] == 1 else "processes"
    processes = f"{row['processes']} {many}"
    batch = f"batch {row['batch']}"
    where = ", ".join(filter(None, (row["device"], _data(row), tables.fs_cache(row["fs_cache"]))))
    return f"{_title(row)}, {row['precision']}, {batch}, {processes}, {where}{row['transport']}"


def _papers_points(axis: Any, models: Sequence[str]) -> None:
    label = "papers, by their GPUs"
    for place, model in enumerate(models):
        for figure in papers.of_network(model):
            at = (place + 0.4, figure.value)
            axis.plot(*at, "D", color=drawing.PAPERS, ms=3, label=label)
            axis.annotate(
                str(figure.gpus),
                at,
                xytext=(4, -2),
                textcoords="offset points",
                fontsize=6,
                color=drawing.PAPERS,
            )
            label = "_"
