"""A study on the screen: a progress bar, curves and the best trials, while processes work on it."""

import html
import io
from collections.abc import Callable, Sequence
from typing import Any

import optuna
import pandas
import studies
from optuna.trial import FrozenTrial, TrialState

ROWS = 10
LEAST_FOR_IMPORTANCE = 4  # trials that came to their end


class SweepView:
    """Progress, curves and table, below the cell."""

    def __init__(self, trials: int) -> None:
        """Show it; ``trials`` are all that are asked for."""
        from IPython.display import display
        from ipywidgets import HTML, Image, VBox

        self._trials = trials
        self._state, self._table = HTML(), HTML()
        self._curves = Image(format="png", layout={"width": "900px", "display": "none"})
        self._drawn: object = None
        display(VBox([self._state, self._curves, self._table]))

    def show(self, study: optuna.Study, words: str, failure: str = "") -> None:
        """Show the study as it is now, and why a process failed, if one did."""
        found = studies.counted(study)
        told = f"<pre>{html.escape(failure)}</pre>" if failure else ""
        self._state.value = progress(found, self._trials, words) + told
        seen = [(t.number, t.state, len(t.intermediate_values)) for t in found]
        if not seen or seen == self._drawn:
            return
        self._drawn = seen
        self._table.value = table(study).to_html(index=False, na_rep="")
        self._curves.value = curves(study)
        self._curves.layout.display = "block"


class Buttons:
    """Cancel and Resume, below the cell."""

    def __init__(self, cancel: Callable[[], object], resume: Callable[[], object]) -> None:
        """Show them."""
        from IPython.display import display
        from ipywidgets import Button, HBox

        self._cancel = Button(description="Cancel", icon="stop")
        self._resume = Button(description="Resume", icon="play", disabled=True)
        self._cancel.on_click(lambda _: cancel())
        self._resume.on_click(lambda _: resume())
        display(HBox([self._cancel, self._resume]))

    def switch(self, *, is_running: bool, is_done: bool) -> None:
        """Enable those that can do something now."""
        self._cancel.disabled, self._resume.disabled = not is_running, is_running or is_done


def progress(found: Sequence[FrozenTrial], trials: int, words: str) -> str:
    """Return how many of the trials have ended, as a bar in HTML with these words."""
    ended = sum(trial.state.is_finished() for trial in found)
    bar = f'<progress max="{trials}" value="{ended}" aria-label="Trials"></progress>'
    return f"{bar} <b>{html.escape(words)}</b>"


def table(study: optuna.Study) -> Any:
    """Return the best trials, best first, and those that run, as a data frame."""
    columns = ("number", "state", "value", "duration", "params")
    frame = study.trials_dataframe(attrs=columns)
    frame = frame[frame["number"].isin([trial.number for trial in studies.counted(study)])]
    upwards = study.direction == optuna.study.StudyDirection.MINIMIZE
    # Before the first trial has ended, pandas does not know that these are durations.
    frame["duration"] = pandas.to_timedelta(frame["duration"]).dt.total_seconds().round(1)
    frame = frame.rename(columns={"duration": "seconds"})
    frame.columns = [_heading(name) for name in frame.columns]
    return frame.sort_values("value", ascending=upwards, na_position="last").head(ROWS)


def _heading(column: str) -> str:
    name = column.removeprefix("params_")
    return column if name in ("number", "state", "value", "seconds") else name


def curves(study: optuna.Study) -> bytes:
    """Draw the values, the course of each trial, and what matters how much; returns a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3), layout="constrained")
    FigureCanvasAgg(figure)
    values, course, matters = figure.subplots(1, 3)
    found = studies.counted(study)
    complete = [t for t in found if t.state == TrialState.COMPLETE]
    better = max if study.direction == optuna.study.StudyDirection.MAXIMIZE else min
    numbers = [trial.number for trial in complete]
    reached = [float(trial.value) for trial in complete if trial.value is not None]
    values.plot(numbers, reached, "o")
    values.step(numbers, [better(reached[: n + 1]) for n in range(len(reached))], where="post")
    values.set(title="value, and the best so far", xlabel="trial")
    for trial in found:
        steps = sorted(trial.intermediate_values)
        is_pruned = trial.state == TrialState.PRUNED
        look = {"color": "lightgrey", "zorder": 1} if is_pruned else {}
        course.plot(steps, [trial.intermediate_values[step] for step in steps], **look)
    course.set(title="course of each trial; grey: pruned", xlabel="step")
    if len(complete) >= LEAST_FOR_IMPORTANCE and len(set(reached)) > 1:
        share = optuna.importance.get_param_importances(study)
        matters.barh(list(share)[::-1], list(share.values())[::-1])
    matters.set(title="importance of hyper-parameters")
    picture = io.BytesIO()
    figure.savefig(picture, dpi=80)
    return picture.getvalue()
