"""What a measurement of the network says: a table, and a figure of who reached whom how fast."""

from collections.abc import Iterator, Mapping
from typing import Any

from reports import drawing

Summary = Mapping[str, Any]


def markdown(summary: Summary) -> str:
    """Show the results: between nodes, and from nodes to the NAS."""
    lines = [
        "| from | to | connections | Gbit/s | lowest to highest | MB/s | sent again |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for rate in summary["figures"]["rates"]:
        middle, low, high = (rate[f"gbit_per_second{end}"] for end in ("", "_lowest", "_highest"))
        lines.append(
            f"| {rate['from']} | {_receiver(rate)} | {rate['streams']} | {middle:,.2f} | "
            f"{low:,.2f} to {high:,.2f} | {middle * 125:,.0f} | {rate['retransmits']:,.0f} |"
        )
    mounts = "The papers' rule: one NFS mount reads about 2,500 MB/s, half of a link of 40 Gbit/s."
    said = f"{mounts} {summary['versions']['iperf3']}; {summary['date']}."
    return "\n".join([*lines, "", " ".join([said, *_servers(summary)])])


def _is_to_nas(row: Mapping[str, Any]) -> bool:
    """Whether a row is of an address of the NAS; results of earlier versions do not say it."""
    return bool(row.get("to_nas"))


def _receiver(rate: Mapping[str, Any]) -> str:
    return f"NAS {rate['to']}" if _is_to_nas(rate) else str(rate["to"])


def _servers(summary: Summary) -> Iterator[str]:
    """Say how the NAS came to its iperf3 servers."""
    parts = [part for part in summary.get("parts", ()) if _is_to_nas(part)]
    if not parts:
        return
    if programs := sorted({part["nas_server"] or "" for part in parts} - {""}):
        yield f"On the NAS {', '.join(programs)} started iperf3 before each measurement;"
    else:
        yield "On the NAS iperf3 listened already: no program was named to start it;"
    yield "the connections to it are those of one process."


def most_streams(summary: Summary) -> dict[tuple[str, str], float]:
    """Return the rate of each link with the most connections that were tried, in Gbit/s."""
    rates = summary["figures"]["rates"]
    most = max(rate["streams"] for rate in rates)
    return {
        (rate["from"], _receiver(rate)): rate["gbit_per_second"]
        for rate in rates
        if rate["streams"] == most
    }


def figure(summary: Summary) -> bytes:
    """Draw the rates as a matrix, sender by receiver, the NAS apart; returns a PNG."""
    rates = most_streams(summary)
    of_nas = list(
        dict.fromkeys(_receiver(rate) for rate in summary["figures"]["rates"] if _is_to_nas(rate))
    )
    names = [name for name in dict.fromkeys(n for pair in rates for n in pair)]
    nodes = [name for name in names if name not in of_nas]
    is_between_nodes = any(receiver in nodes for _, receiver in rates)
    columns = [*(nodes if is_between_nodes else ()), *of_nas]
    table = [[rates.get((row, column), float("nan")) for column in columns] for row in nodes]
    width, height = (max(3.4, 1.6 + 0.8 * len(ends)) for ends in (columns, nodes))
    picture = drawing.new(width + 2, height)
    axis = picture.subplots()
    shown = axis.imshow(table, vmin=0, vmax=max(rates.values()), cmap="viridis")
    axis.set_xticks(range(len(columns)), columns, rotation=30, ha="right")
    axis.set_yticks(range(len(nodes)), nodes)
    axis.set_xlabel("to")
    axis.set_ylabel("from")
    if of_nas and is_between_nodes:
        axis.axvline(len(nodes) - 0.5, color="white", linewidth=4)
    half = max(rates.values()) / 2
    for (sender, receiver), rate in rates.items():
        at = columns.index(receiver), nodes.index(sender)
        colour = "black" if rate > half else "white"
        axis.text(*at, f"{rate:,.1f}", ha="center", va="center", color=colour)
    picture.colorbar(shown, label="Gbit/s")
    return drawing.png(picture)
