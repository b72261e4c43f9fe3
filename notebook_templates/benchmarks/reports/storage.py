"""What a measurement of storage says: a table, and a figure with the papers' points."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from measurement import tables
from measurement.papers import CACHE_HIT_RATES, STORAGE_MB_PER_SECOND
from reports import drawing
from reports.comparison import shortened

Summary = Mapping[str, Any]
_BANDWIDTH = ("read", "write", "training")
_REQUESTS = ("random-read", "random-write")
_LINES = {"read": "-", "write": "--", "training": ":", "random-read": "-", "random-write": "--"}
_ENOUGH = 0.99
"""Of what was asked for: fio paces its requests to about this."""


def where(mounts: Sequence[str]) -> str:
    """Name one mount, or several that were used in turn."""
    return mounts[0] if len(mounts) == 1 else f"{len(mounts)} mounts in turn"


def markdown(summary: Summary) -> str:
    """Show the results, the papers' figures below it, and what caches had to do with it."""
    lines = [
        "| load | mount | clients | MB/s | lowest to highest | IOPS | latency, ms | asked MB/s | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_line(rate) for rate in summary["figures"]["rates"]),
    ]
    for clients, speed in STORAGE_MB_PER_SECOND.items():
        lines.append(f"| read | papers: the NAS | {clients} | {speed:,} | | | | | |")
    return "\n".join([*lines, "", *_remarks(summary)])


def _line(rate: Mapping[str, Any]) -> str:
    asked, verdict = rate["asked_mb_per_second"], ""
    if asked:
        keeps_up = rate["mb_per_second"] >= _ENOUGH * asked
        verdict = "keeps up" if keeps_up else f"{rate['mb_per_second'] / asked:.0%} of it"
    cells = (
        rate["load"],
        where(rate["mounts"]),
        rate["clients"],
        f"{rate['mb_per_second']:,.0f}",
        _range(rate),
        f"{rate['iops']:,.0f}",
        "no I/O" if rate["latency_ms"] is None else f"{rate['latency_ms']:.2f}",
        f"{asked:,.0f}" if asked else "",
        verdict,
    )
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _range(rate: Mapping[str, Any]) -> str:
    if rate["runs"] == 1:
        return "one run"
    return f"{rate['mb_per_second_lowest']:,.0f} to {rate['mb_per_second_highest']:,.0f}"


def _remarks(summary: Summary) -> list[str]:
    configuration, parts = summary["configuration"], summary["parts"]
    processes, depth = configuration["processes"], configuration["depth"]
    remarks = [
        f"Processes on each client: {processes}, each with {depth} requests at once; "
        f"{summary['versions']['fio']}; {summary['date']}."
    ]
    engines = sorted({engine for part in parts for engine in part["engines"]})
    if engines != ["libaio"]:
        remarks.append(f"Not libaio but {', '.join(engines)}: it did not work here.")
    through = [part for part in parts if not part["direct"]]
    if not through:
        remarks.append("Past the clients' caches (O_DIRECT).")
    else:
        hits = max(part["expected_hit_rate"] for part in through)
        count, many = sum(part["caches_dropped"] for part in through), len(through)
        # A node on which the user may not drop them takes part in some of them alone.
        dropped = {many: "dropped before each part", 0: "not dropped"}.get(
            count, f"dropped before {count} of {many} parts only"
        )
        remarks.append(
            f"Through the clients' caches, which were {dropped}: up to {hits:.1%} of reads can be "
            "from memory, cache over data."
        )
    remarks += _fs_cache(summary)
    if flushed := sorted({part.get("nas_flushed_by") or "" for part in parts} - {""}):
        remarks.append(f"The NAS's caches were flushed before each part by {', '.join(flushed)}.")
    if (most := max((part["storage_hit_rate"] or 0) for part in parts)) > 0:
        rates = [f"{share:.1%} of {cache}" for cache, share in CACHE_HIT_RATES.items()]
        remarks.append(
            f"Up to {most:.1%} can come from the storage's own cache; the papers expected "
            f"{', '.join(rates)}."
        )
    return ["", " ".join(remarks)]


def _fs_cache(summary: Summary) -> Iterator[str]:
    """Say on which mounts the clients keep on their own disks what they read."""
    rates = summary["figures"]["rates"]
    found = {where(rate["mounts"]): rate.get("fs_cache") for rate in rates}
    told = [f"{place}: {said}" for place, kept in found.items() if (said := tables.fs_cache(kept))]
    if told:
        yield f"{'; '.join(told)}."
    if True in found.values() and any(part["direct"] for part in summary["parts"]):
        yield "Reads past the clients' caches pass by FS-Cache, too."


def figure(summary: Summary) -> bytes:
    """Draw bandwidth and requests a second over the clients; returns a PNG."""
    # A line of the legend for each load and place.
    picture = drawing.new(9, 3.6 + 0.1 * len(_lines(summary)))
    bandwidth, requests = picture.subplots(1, 2)
    _draw(bandwidth, summary, _BANDWIDTH, "mb_per_second")
    papers = STORAGE_MB_PER_SECOND
    bandwidth.plot(list(papers), list(papers.values()), "D", color="grey", label="papers: read")
    _draw(requests, summary, _REQUESTS, "iops")
    for axis, title in ((bandwidth, "MB/s, 1 MiB requests"), (requests, "IOPS, 4 KiB requests")):
        axis.set_title(title)
        axis.set_xlabel("clients at once")
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[1]:
            axis.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.18))
    # The papers' storage may be far above.
    bandwidth.set_yscale("log")
    bandwidth.yaxis.set_minor_formatter("")
    for axis in (bandwidth, requests):
        axis.yaxis.set_major_formatter("{x:,.0f}")
    requests.set_ylim(bottom=0)
    return drawing.png(picture)


def _lines(summary: Summary) -> set[tuple[str, ...]]:
    return {(rate["load"], *rate["mounts"]) for rate in summary["figures"]["rates"]}


def _draw(axis: Any, summary: Summary, loads: Sequence[str], name: str) -> None:
    rates = [rate for rate in summary["figures"]["rates"] if rate["load"] in loads]
    places = list(dict.fromkeys(tuple(rate["mounts"]) for rate in rates))
    for load in loads:
        for number, place in enumerate(places):
            mine = [r for r in rates if r["load"] == load and tuple(r["mounts"]) == place]
            if not mine:
                continue
            middle = [rate[name] for rate in mine]
            below = [rate[name] - rate[f"{name}_lowest"] for rate in mine]
            above = [rate[f"{name}_highest"] - rate[name] for rate in mine]
            axis.errorbar(
                [rate["clients"] for rate in mine],
                middle,
                yerr=(below, above),
                fmt=f"o{_LINES[load]}",
                color=f"C{number}",
                capsize=3,
                label=f"{load}, {shortened(where(place))}",
            )
