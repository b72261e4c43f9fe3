"""A training on the screen while it goes on: a progress bar, and its curves, drawn again and again.

curves = LiveCurves(steps=900)
curves.add(100, loss=0.4, training_accuracy=0.88, test_accuracy=0.93)
"""

import io

from IPython.display import HTML, Image, display
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

WIDTH, HEIGHT = 9.0, 2.4  # inches


class LiveCurves:
    """What is shown below the cell that makes it: the loss, and beside it accuracies."""

    def __init__(self, steps: int) -> None:
        """Show an empty bar, and axes as wide as the training is long."""
        self._steps = steps
        self._points: dict[str, list[tuple[int, float]]] = {}
        self._bar = display(HTML(progress_bar(0, steps)), display_id=True)
        self._picture = display(self._drawn(), display_id=True)

    def add(self, step: int, loss: float, **accuracies: float) -> None:
        """Draw what was reached by a step; an underscore in a name stands for a space."""
        for name, value in {"loss": loss, **accuracies}.items():
            self._points.setdefault(name, []).append((step, float(value)))
        self._bar.update(HTML(progress_bar(step, self._steps)))
        self._picture.update(self._drawn())

    def _drawn(self) -> Image:
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        FigureCanvasAgg(figure)
        loss, accuracy = figure.subplots(1, 2)
        for name, points in self._points.items():
            axis = loss if name == "loss" else accuracy
            steps, values = [step for step, _ in points], [value for _, value in points]
            axis.plot(steps, values, marker=".", label=name.replace("_", " "))
        for axis, title in ((loss, "loss"), (accuracy, "accuracy")):
            axis.set_title(title)
            axis.set_xlabel("step")
            axis.set_xlim(0, self._steps)
            axis.grid(alpha=0.3)
        if self._points:
            accuracy.legend()
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=80)
        return Image(picture.getvalue(), format="png")


def progress_bar(step: int, steps: int) -> str:
    """Return a bar in HTML, with its figures in words."""
    words = f"step {step:,} of {steps:,}"
    return f'<progress max="{steps}" value="{step}" aria-label="Training"></progress> {words}'
