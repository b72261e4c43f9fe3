"""What runs of the benchmark `interconnect` show: a picture, and tables in Markdown.

The papers ran NCCL's tests over 8, 16 and 32 GPUs; our notes of them have no figures to print here.
Of copies between two GPUs they have.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from measurement import papers, tables
from reports import drawing

Summary = Mapping[str, Any]
UNITS = ((2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_OFF = "_without_peers"
_ON_AND_OFF = ("gb_per_second", f"gb_per_second{_OFF}", "microseconds", f"microseconds{_OFF}")


def size_words(size: int) -> str:
    """Write a size.

    >>> size_words(65536), size_words(4)
    ('64 KiB', '4 B')
    """
    many, unit = next((many, unit) for many, unit in UNITS if size >= many)
    return f"{size / many:,.4g} {unit}"


def lines_of(summaries: Sequence[Summary]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rates of each group of processes, by what it is called, by size.

    Where runs have a group of the same name, the date tells them apart.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    dates = len({str(one["date"]) for one in summaries})
    for summary in summaries:
        when = f", {summary['date'][:16].replace('T', ' ')}" if dates > 1 else ""
        told = tables.transport(summary)
        for rate in summary["figures"]["rates"]:
            nodes = f"{rate['nodes']} node{'' if rate['nodes'] == 1 else 's'}"
            name = f"{rate['engine']}, {rate['processes']} processes on {nodes}{when}{told}"
            found.setdefault(name, []).append(rate)
    return {name: sorted(rates, key=lambda one: int(one["bytes"])) for name, rates in found.items()}


def figure(summaries: Sequence[Summary]) -> bytes:
    """Draw the bus bandwidth and the time over the size of a message; returns a PNG."""
    picture = drawing.new(10, 4)
    speeds, times = picture.subplots(1, 2)
    for name, rates in lines_of(summaries).items():
        sizes = [one["bytes"] for one in rates]
        for axis, figure in ((speeds, "bus_gb_per_second"), (times, "microseconds")):
            (line,) = axis.plot(sizes, [one[figure] for one in rates], marker="o", label=name)
            between = [[one[f"{figure}_{end}"] for one in rates] for end in ("lowest", "highest")]
            axis.fill_between(sizes, *between, color=line.get_color(), alpha=0.2)
    for axis, title in ((speeds, "bus bandwidth, GB/s"), (times, "time, µs")):
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title(f"All-reduce: {title}")
        axis.set_xlabel("size of a message")
        marks = _marks(axis.get_xlim())
        axis.set_xticks(marks, [size_words(mark) for mark in marks])
        axis.grid(alpha=0.3)
    speeds.legend(fontsize="small")
    return drawing.png(picture)


def _marks(limits: tuple[float, float]) -> list[int]:
    return [4**power for power in range(1, 20, 2) if limits[0] <= 4**power <= limits[1]]


def markdown(summaries: Sequence[Summary]) -> str:
    """Write a table for each group of processes, and those of the GPUs' copies."""
    rates_of = [_table(name, rates) for name, rates in lines_of(summaries).items()]
    nodes = [
        node for summary in summaries for part in summary["parts"] for node in part.get("peers", [])
    ]
    missing = [
        f"{part['name']} could not be measured: {part['missing']}"
        for summary in summaries
        for part in summary["parts"]
        if "missing" in part
    ]
    beside = [_beside_papers(nodes)] if nodes else []
    return "\n\n".join([*rates_of, *map(_matrices, nodes), *beside, *missing])


def _beside_papers(nodes: Sequence[Mapping[str, Any]]) -> str:
    """Hold peer-to-peer on against off: means over the direct pairs, and the papers' figures."""
    low, high = papers.PEER_MICROSECONDS
    head = ["", "GB/s, on", "GB/s, off", "µs, on", "µs, off"]
    rows = [
        [node["node"], *(_mean_of_pairs(node, figure) for figure in _ON_AND_OFF)] for node in nodes
    ]
    papers_own = [
        "papers: V100-SXM2 on NVLink",
        f"{papers.PEER_GB_PER_SECOND:g}",
        "",
        f"{low:g} to {high:g}",
        f"{papers.HOST_MICROSECONDS:g}",
    ]
    title = "Copies between two GPUs, peer-to-peer on and off"
    return f"**{title}**\n\n{tables.markdown(head, [*rows, papers_own])}"


def _mean_of_pairs(node: Mapping[str, Any], figure: str) -> str:
    """Say a figure's mean over the pairs that are connected directly; empty where there is none."""
    gpus = range(len(node["gpus"]))
    pairs = [
        node[figure][a][b]
        for a in gpus
        for b in gpus
        if figure in node and a != b and node["is_direct"][a][b]
    ]
    return tables.number(fmean(pairs)) if pairs else ""


def _table(name: str, rates: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in rates:
        low, high = one["bus_gb_per_second_lowest"], one["bus_gb_per_second_highest"]
        figures = (one["microseconds"], one["bus_gb_per_second"])
        between = f"{tables.number(low)} to {tables.number(high)}"
        rows.append([size_words(one["bytes"]), *map(tables.number, figures), between])
    head = ["message", "time, µs", "bus bandwidth, GB/s", "lowest and highest"]
    return f"**{name}**\n\n{tables.markdown(head, rows)}"


def _matrices(node: Mapping[str, Any]) -> str:
    gpus = range(len(node["gpus"]))
    through = [f"{a} to {b}" for a in gpus for b in gpus if not node["is_direct"][a][b]]
    how = f"Through the host's memory: {', '.join(through)}." if through else "All are direct."
    on = _matrices_of(
        node,
        gb_per_second="GB/s of a large copy",
        both_ways_gb_per_second="GB/s of large copies both ways at once",
        microseconds="µs of a small",
    )
    off = _matrices_of(
        node,
        gb_per_second_without_peers="GB/s of a large copy, peer-to-peer off",
        microseconds_without_peers="µs of a small, peer-to-peer off",
    )
    return "\n\n".join([*on, how, *off])


def _matrices_of(node: Mapping[str, Any], **titles: str) -> list[str]:
    """Write the matrices that a node has; an earlier version has measured fewer."""
    gpus = range(len(node["gpus"]))
    head = ["from GPU", *(f"to {n}" for n in gpus)]
    return [
        f"**{node['node']}: {title}**\n\n"
        + tables.markdown(head, [[str(n), *map(tables.number, node[name][n])] for n in gpus])
        for name, title in titles.items()
        if name in node
    ]
