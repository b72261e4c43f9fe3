"""A measurement and how busy its nodes were, on one time axis."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from measurement.sampling import Samples
from reports import drawing
from reports.comparison import QUANTITIES, quantity_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The upper end of an axis of percents: a line at 100 is seen.
_WHOLE = 105

Times = Sequence[float]
Lines = Sequence[Mapping[str, Any]]


def picture(summary: Mapping[str, Any]) -> bytes:
    """Draw what a run reached, part by part, and how busy its nodes were; returns a PNG."""
    name = quantity_of(summary)
    reached = course(summary["parts"], name)
    nas = summary.get("nas", ())
    return drawing.png(figure(reached, summary["samples"], QUANTITIES[name], nas))


def course(parts: Sequence[Mapping[str, Any]], name: str) -> list[tuple[float, float]]:
    """Return moments, and what was reached since the one before; 0 between two parts.

    ``name``: of the parts' rate; one without it says nothing.
    """
    found: list[tuple[float, float]] = []
    for part in parts:
        if "throughput" in part:
            found += part["throughput"]
        elif name in part:
            begin, end = part["times"]
            found += [(begin, part[name]), (end, part[name]), (end, 0.0)]
    return found


def figure(
    throughput: Sequence[tuple[float, float]],
    samples: Samples,
    unit: str = "images/s",
    nas: Lines = (),
) -> "Figure":
    """Draw the throughput, and below it GPUs, cores, memory, network and storage of each node.

    ``throughput``: moments in seconds since 1970, and what was reached since the one before, in
    ``unit``; 0 where something new begins. ``nas``: what the NAS says of itself, drawn last: all
    that it does, also for others.
    """
    moments = [moment for moment, _ in throughput]
    moments += [line["time"] for lines in samples.values() for line in lines[:1]]
    start = min(moments, default=0.0)
    more = (_nas_rates, _nas_disks, _nas_sizes) if nas else ()
    drawn = drawing.new(9, 9 + 1.5 * len(more))
    first, *others = drawn.subplots(6 + len(more), 1, sharex=True)
    seen = [value or float("nan") for _, value in throughput]
    first.plot([moment - start for moment, _ in throughput], seen, ".-", markersize=3)
    first.set(ylabel=unit, ylim=(0, None))
    of_nodes = (_gpus, _cores, _memory, _network, _storage)
    for axis, draw_nas in zip(others[len(of_nodes) :], more, strict=True):
        draw_nas(axis, [line["time"] - start for line in nas], nas)
        axis.set_ylim(0, None)
    for axis, draw in zip(others, of_nodes, strict=False):
        for node, lines in samples.items():
            draw(axis, node, [line["time"] - start for line in lines], lines)
        axis.set_ylim(0, _WHOLE if axis.get_ylabel().endswith("%") else None)
    for axis in (first, *others):
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(loc="upper right", fontsize="small")
    others[-1].set_xlabel("seconds")
    return drawn


def _gpus(axis: "Axes", node: str, times: Times, lines: Lines) -> None:
    axis.set_ylabel("GPU use, %")
    many = max((len(line["gpu_shares"]) for line in lines), default=0)
    if not many:
        axis.text(0.5, 0.5, "no GPU", transform=axis.transAxes, ha="center", va="center")
        return
    means = [100 * sum(line["gpu_shares"]) / max(1, len(line["gpu_shares"])) for line in lines]
    axis.plot(times, means, label=f"{node}, mean of {many}")


def _cores(axis: "Axes", node: str, times: Times, lines: Lines) -> None:
    axis.set_ylabel("CPU, %")
    axis.plot(times, [100 * line["cpu_share"] for line in lines], label=node)


def _memory(axis: "Axes", node: str, times: Times, lines: Lines) -> None:
    axis.set_ylabel("memory, GiB")
    axis.plot(times, [line["memory_mb"] / 1024 for line in lines], label=node)


def _network(axis: "Axes", node: str, times: Times, lines: Lines) -> None:
    axis.set_ylabel("network, MB/s")
    axis.plot(times, [line["received_mb_per_second"] for line in lines], label=f"{node}, in")
    axis.plot(times, [line["sent_mb_per_second"] for line in lines], "--", label=f"{node}, out")


def _storage(axis: "Axes", node: str, times: Times, lines: Lines) -> None:
    axis.set_ylabel("storage, MB/s")
    axis.plot(times, [line["read_mb_per_second"] for line in lines], label=f"{node}, read")
    axis.plot(
        times, [line["written_mb_per_second"] for line in lines], "--", label=f"{node}, write"
    )


def _nas_rates(axis: "Axes", times: Times, lines: Lines) -> None:
    axis.set_ylabel("NAS, MB/s")
    _curves(axis, times, lines, read_mb_per_second="read", written_mb_per_second="written")
    _curves(axis, times, lines, disk_read_mb_per_second="read from disks")


def _nas_disks(axis: "Axes", times: Times, lines: Lines) -> None:
    axis.set_ylabel("NAS's disks, 1/s")
    _curves(axis, times, lines, disk_reads_per_second="reads", disk_writes_per_second="writes")


def _nas_sizes(axis: "Axes", times: Times, lines: Lines) -> None:
    axis.set_ylabel("a disk's read, KiB")
    _curves(axis, times, lines, disk_read_kib="mean size")


def _curves(axis: "Axes", times: Times, lines: Lines, **labels: str) -> None:
    for name, label in labels.items():
        values = [float("nan") if line[name] is None else line[name] for line in lines]
        axis.plot(times, values, label=label)
