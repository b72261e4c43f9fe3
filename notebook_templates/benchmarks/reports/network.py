"""What a measurement of the network says: a table, and a figure of who reached whom how fast."""

from collections.abc import Mapping
from typing import Any

from reports import drawing

Summary = Mapping[str, Any]


def markdown(summary: Summary) -> str:
    """Show the results."""
    lines = [
        "| from | to | connections | Gbit/s | lowest to highest | MB/s | sent again |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for rate in summary["figures"]["rates"]:
        middle, low, high = (rate[f"gbit_per_second{end}"] for end in ("", "_lowest", "_highest"))
        lines.append(
            f"| {rate['from']} | {rate['to']} | {rate['streams']} | {middle:,.2f} | "
            f"{low:,.2f} to {high:,.2f} | {middle * 125:,.0f} | {rate['retransmits']:,.0f} |"
        )
    mounts = "The papers' rule: one NFS mount reads about 2,500 MB/s, half of a link of 40 Gbit/s."
    return "\n".join([*lines, "", f"{mounts} {summary['versions']['iperf3']}; {summary['date']}."])


def most_streams(summary: Summary) -> dict[tuple[str, str], float]:
    """Return the rate of each link with the most connections that were tried, in Gbit/s."""
    rates = summary["figures"]["rates"]
    most = max(rate["streams"] for rate in rates)
    return {
        (rate["from"], rate["to"]): rate["gbit_per_second"]
        for rate in rates
        if rate["streams"] == most
    }


def figure(summary: Summary) -> bytes:
    """Draw the rates as a matrix, sender by receiver; returns a PNG."""
    rates = most_streams(summary)
    names = list(dict.fromkeys(name for pair in rates for name in pair))
    table = [[rates.get((row, column), float("nan")) for column in names] for row in names]
    size = max(3.4, 1.6 + 0.8 * len(names))
    picture = drawing.new(size + 2, size)
    axis = picture.subplots()
    shown = axis.imshow(table, vmin=0, vmax=max(rates.values()), cmap="viridis")
    axis.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axis.set_yticks(range(len(names)), names)
    axis.set_xlabel("to")
    axis.set_ylabel("from")
    half = max(rates.values()) / 2
    for (sender, receiver), rate in rates.items():
        at = names.index(receiver), names.index(sender)
        colour = "black" if rate > half else "white"
        axis.text(*at, f"{rate:,.1f}", ha="center", va="center", color=colour)
    picture.colorbar(shown, label="Gbit/s")
    return drawing.png(picture)
