"""The finished measurements of inference, with the papers' figures beside them."""

from collections.abc import Mapping, Sequence
from typing import Any

from measurement import papers, tables
from reports import drawing

Summary = Mapping[str, Any]

SPEEDS = (
    "network",
    "on",
    "precision",
    "engine",
    "batch",
    "images/s",
    "median ms",
    "95 % ms",
    "x fp32",
)
ACCURACY = (
    "network",
    "precision",
    "top-1",
    "top-5",
    "points from fp32",
    "papers' points",
    "published top-1, top-5",
)
PAPERS = "papers: ResNet-50, V100, TensorRT 4.0"
FAR_BELOW = 0.05
"""Top-1 so much below what was published for the same weights is no chance with 1,000 images."""


def markdown(summaries: Sequence[Summary]) -> str:
    """Return the newest run's tables: speed by batch size, and accuracy side by side."""
    newest = summaries[-1]
    (low, high), above = papers.INT8_TIMES_FP32, papers.INT8_TIMES_FP32_ABOVE
    speeds = [
        *_speeds(newest),
        *_missing(newest),
        [PAPERS, "", "int8", "", f"below {papers.INT8_LIMIT}", *[""] * 3, f"{low:g} to {high:g}"],
        [PAPERS, "", "int8", "", f"from {papers.INT8_LIMIT}", *[""] * 3, f"about {above:g}"],
    ]
    fast = f"{tables.markdown(SPEEDS, speeds)}\n\n" if speeds_of(newest) else ""
    return f"{fast}{accuracy(newest)}"


def accuracy(summary: Summary) -> str:
    """Return the table of accuracy: pretrained networks over ImageNet, or one over digits."""
    pretrained = [part for part in summary["parts"] if "top1" in part and "network" in part]
    left_out = summary["figures"].get("left_out", {})
    if not pretrained and not left_out:
        rows = [*_of_digits(summary), ["papers, ImageNet", "int8", "", "", "", _points()]]
        return tables.markdown(ACCURACY, rows)
    rows = [row for part in pretrained for row in _of_pretrained(part)]
    rows += [[name, f"left out: {why}"] for name, why in left_out.items()]
    table = tables.markdown(ACCURACY, rows)
    said = [f"{part['network']} {part['weights']}" for part in pretrained]
    configuration = summary["configuration"]
    many = f"{configuration['calibration_batches']} batches of {configuration['calibration_batch']}"
    # Until parts said how many, those to calibrate with were drawn from all, and tested as well.
    apart = all("calibration_images" in part for part in pretrained)
    which = f"the first {many}, which are not among these" if apart else f"{many} of them"
    lines = [
        table,
        f"ImageNet's validation images: {max((part['images'] for part in pretrained), default=0):,}"
        f"; int8 calibrated on {which}. Weights: {', '.join(said) or 'none'}.",
    ]
    if any(_is_far_below(part) for part in pretrained):
        lines.append(
            "(!): far below what was published for these weights. Is the list of labels another "
            "data set's, or in another order?"
        )
    return "\n\n".join(lines)


def speeds_of(summary: Summary) -> list[Mapping[str, Any]]:
    """Return the parts that are speeds."""
    return [part for part in summary["parts"] if "images_per_second" in part]


def device(summary: Summary) -> str:
    """Say what it ran on."""
    host = summary["hosts"][0]
    return host["gpus"][0]["name"] if host["gpus"] else f"{host['cores']} cores"


def _speeds(summary: Summary) -> list[list[str]]:
    found = speeds_of(summary)
    fp32 = {one["batch"]: one["images_per_second"] for one in found if one["precision"] == "fp32"}
    network = f"ResNet-{summary['configuration']['model']}"
    return [
        [
            network,
            device(summary),
            one["precision"],
            one["engine"],
            str(one["batch"]),
            tables.number(one["images_per_second"]),
            tables.number(one["median_ms"]),
            tables.number(one["p95_ms"]),
            f"{one['images_per_second'] / fp32[one['batch']]:.2f}",
        ]
        for one in found
    ]


def _missing(summary: Summary) -> list[list[str]]:
    """Return a row for each precision that could not be had, which says why."""
    found = {one["precision"]: one["missing"] for one in summary["parts"] if "missing" in one}
    network = f"ResNet-{summary['configuration']['model']}"
    return [
        [network, device(summary), name, f"not measured: {lacking}", *[""] * 5]
        for name, lacking in found.items()
    ]


def _of_digits(summary: Summary) -> list[list[str]]:
    (part,) = (part for part in summary["parts"] if part["name"] == "accuracy")
    points = summary["figures"]["top1_points"]
    network = f"ResNet-{summary['configuration']['accuracy_model']}, digits"
    return [
        [
            network,
            name,
            tables.percentage(top1),
            tables.percentage(part["top5"][name]),
            f"{points[name]:+.2f}",
        ]
        for name, top1 in part["top1"].items()
    ]


def _of_pretrained(part: Mapping[str, Any]) -> list[list[str]]:
    """Return a network's rows, in hundredths of a per cent: what int8 loses is not more."""
    exact = part["top1"]["fp32"]
    rows = [
        [
            part["network"],
            name,
            f"{100 * top1:.2f} %",
            f"{100 * part['top5'][name]:.2f} %",
            f"{100 * (top1 - exact):+.2f}",
            _points() if name == "int8" else "",
            _published(part) if name == "fp32" else "",
        ]
        for name, top1 in part["top1"].items()
    ]
    return rows + [
        [part["network"], name, f"not measured: {why}"] for name, why in part["lacking"].items()
    ]


def _published(part: Mapping[str, Any]) -> str:
    if "published" not in part:
        return ""
    top1, top5 = part["published"]
    mark = " (!)" if _is_far_below(part) else ""
    return f"{100 * top1:.2f} %, {100 * top5:.2f} %{mark}"


def _is_far_below(part: Mapping[str, Any]) -> bool:
    if "published" not in part or part["images"] < 1000:
        return False
    return bool(part["top1"]["fp32"] < part["published"][0] - FAR_BELOW)


def _points() -> str:
    low, high = papers.INT8_POINTS
    return f"{low:+.2f} to {high:+.2f}"


def figure(summaries: Sequence[Summary]) -> bytes:
    """Draw the newest run's throughput and latency over the batch size; returns a PNG."""
    newest = summaries[-1]
    found = speeds_of(newest)
    picture = drawing.new(10, 3.8)
    throughput, latency = picture.subplots(1, 2)
    for number, name in enumerate(dict.fromkeys(one["precision"] for one in found)):
        mine = [one for one in found if one["precision"] == name]
        batches = [one["batch"] for one in mine]
        color = drawing.OWN[number % len(drawing.OWN)]
        throughput.plot(
            batches, [one["images_per_second"] for one in mine], "o-", label=name, color=color
        )
        latency.plot(batches, [one["median_ms"] for one in mine], "o-", label=name, color=color)
    throughput.set(title="Throughput", ylabel="images/s", ylim=(0, None))
    latency.set(title="Latency of a batch, median", ylabel="ms", yscale="log")
    for axis in (throughput, latency):
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("images in a batch")
        axis.grid(alpha=0.3)
    if found:
        throughput.legend()
    picture.suptitle(f"ResNet-{newest['configuration']['model']} on {device(newest)}", fontsize=11)
    return drawing.png(picture)
