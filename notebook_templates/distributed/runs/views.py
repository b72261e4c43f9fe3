"""A run on the screen, while it goes on."""

import asyncio
import html
import io
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

# jobs.py is among the templates for Slurm, result.py among the benchmarks.
sys.path += [str(Path(__file__).resolve().parents[2] / name) for name in ("slurm", "benchmarks")]
import jobs
from plans import PlanError

from measurement.result import words
from runs.submitted import Submitted

PARTS_SHOWN = 8
LOG_LINES = 8
# What is said and drawn of a training, where its lines have it: in a sentence, and as a title.
VALUES = {
    "images_per_second": ("{:,.0f} images/s", "images/s"),
    "tokens_per_second": ("{:,.0f} tokens/s", "tokens/s"),
    "flops_use": ("{:.1%} of the FLOPS", "share of the FLOPS"),
    "loss": ("loss {:.4f}", "loss"),
    "held_out_loss": ("held-out loss {:.4f}", "held-out loss"),
    "perplexity": ("perplexity {:.4g}", "perplexity"),
    "accuracy": ("accuracy {:.4f}", "accuracy"),
}
_NEEDED = ("step", "steps", "loss")


class View:
    """A run on the screen: state, progress bar, figures, and the buttons Cancel and Resume."""

    def __init__(self, run: Submitted) -> None:
        """Show it below the cell."""
        from IPython.display import display
        from ipywidgets import HTML, Button, HBox, Image, IntProgress, VBox

        self._run = run
        self._state, self._figures, self._link, self._log = HTML(), HTML(), HTML(), HTML()
        self._bar = IntProgress(min=0, max=1)
        self._curves = Image(format="png", layout={"width": "720px", "display": "none"})
        self._cancel = Button(description="Cancel", icon="stop")
        self._resume = Button(description="Resume", icon="play", disabled=True)
        self._cancel.on_click(lambda _: self._run.job.cancel() if self._run.job else None)
        self._resume.on_click(lambda _: self._go_on())
        self._drawn_lines = -1
        buttons = HBox([self._cancel, self._resume, self._link])
        parts = [self._state, self._bar, self._figures, self._curves, self._log, buttons]
        display(VBox(parts))

    def watch(self) -> "asyncio.Task[jobs.JobStatus]":
        """Follow the run's job."""
        job = self._run.job
        if job is None:
            raise PlanError(f"{self._run.folder} has no job: start one")
        return jobs.watch(job, self._show)

    def _go_on(self) -> None:
        self._run.submit()
        self.watch()

    def _show(self, state: jobs.JobStatus) -> None:
        job = self._run.job
        text = f"Job {job.number if job else ''} {state.words()}"
        is_done = self._run.summary() is not None and state.is_over
        error = self._run.folder / "error.txt"
        if state.is_over and not is_done and error.exists():
            text += f"\n{jobs.tail(error)}"
        self._state.value = f"<pre><b>{html.escape(text)}</b></pre>"
        self._cancel.disabled, self._resume.disabled = state.is_over, not state.is_over or is_done
        lines = self._run.progress()
        log = jobs.tail(self._run.folder / "processes.log", LOG_LINES, most_bytes=20_000)
        self._log.value = f"<pre>{html.escape(log)}</pre>" if log else ""
        if len(lines) == self._drawn_lines:
            return
        self._drawn_lines = len(lines)
        if seen := reached(lines):
            self._bar.max, self._bar.value = seen.whole, seen.done
            self._bar.description = seen.unit
            self._figures.value = "<br>".join(html.escape(line) for line in seen.lines)
        if reports := reports_of(lines):
            self._curves.value = curves(reports)
            self._curves.layout.display = "block"
            self._link.value = tensorboard_link(self._run.folder)


@dataclass(frozen=True)
class Reached:
    """How far a run is."""

    done: int
    whole: int
    unit: str
    lines: tuple[str, ...]


def reports_of(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return a training's reports; a measurement has none.

    A program of the user's may write lines of another form, which are left out.
    """
    return [line for line in lines if all(_is_number(line, name) for name in _NEEDED)]


def _is_number(line: Mapping[str, Any], name: str) -> bool:
    return isinstance(line.get(name), int | float)


def reached(lines: Sequence[Mapping[str, Any]]) -> Reached | None:
    """Say what a training's or a measurement's progress so far comes to; ``None`` before any."""
    if reports := reports_of(lines):
        last = reports[-1]
        return Reached(last["step"], last["steps"], "steps", (figures(last),))
    if not lines or "parts" not in lines[-1]:
        return None
    measured = [line for line in lines if "part" in line]
    said = [f"{line['part']}: {words(line['values'])}" for line in measured]
    done, whole = len(measured), max(1, lines[-1]["parts"])
    return Reached(done, whole, "parts", (f"{done} of {whole} parts", *said[-PARTS_SHOWN:]))


def tensorboard_link(folder: Path) -> str:
    """Return a link, in HTML, to the session's TensorBoard for a folder below the home.

    Empty for a folder elsewhere, and outside a session of the portal.
    """
    session = os.environ.get("JUPYTERHUB_SERVICE_PREFIX")
    home = Path.home()
    if not session or not folder.is_relative_to(home):
        return ""
    address = f"{session}tensorboard/?folder={quote(str(folder.relative_to(home)))}"
    return f'<a href="{html.escape(address)}" target="_blank">TensorBoard</a>'


def figures(line: Mapping[str, Any]) -> str:
    """Say the last line of progress in words."""
    epoch = f"epoch {line['epoch']}, " if "epoch" in line else ""
    there = {name: one for name, (one, _) in VALUES.items() if _is_number(line, name)}
    said = [sentence.format(line[name]) for name, sentence in there.items()]
    return f"{epoch}step {line['step']:,} of {line['steps']:,}: {', '.join(said)}"


def curves(lines: Sequence[Mapping[str, Any]]) -> bytes:
    """Draw loss, accuracy, speed and so on over the steps that have them; returns a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.4), layout="constrained")
    FigureCanvasAgg(figure)
    names = [name for name in VALUES if any(_is_number(line, name) for line in lines)]
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for axis, name in zip(axes, names, strict=True):
        having = [line for line in lines if _is_number(line, name)]
        axis.plot([line["step"] for line in having], [line[name] for line in having])
        axis.set_title(VALUES[name][1])
        axis.set_xlabel("step")
        axis.grid(alpha=0.3)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=80)
    return picture.getvalue()
