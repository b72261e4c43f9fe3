"""What the figures of all reports share."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OWN = ("#1f5fa8", "#d1702a", "#2e8b57", "#8a4fa3")
PAPERS = "#666666"
LARGEST_RATIO = 30


def new(width: float, height: float) -> "Figure":
    """Return a figure of so many inches, which no window shows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def scale(axis: Any, unit: str, values: Sequence[float]) -> None:
    """Let all values be seen: bars from 0, or where they are too far apart, by powers of ten."""
    axis.set_ylabel(unit)
    if max(values) > LARGEST_RATIO * min(values):
        axis.set_yscale("log")
        axis.set_ylim(bottom=min(values) / 10)
        axis.set_ylabel(f"{unit} (logarithmic)")
    axis.yaxis.set_major_formatter("{x:,.10g}")


def png(figure: "Figure") -> bytes:
    """Return the figure as a PNG."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=100)
    return picture.getvalue()
