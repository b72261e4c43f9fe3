"""A sweep from a notebook: a job array whose tasks work on one study, cancelled and resumed.

sweep = Sweep(folder, plan)     # a Plan of try_all.py, with `array` tasks
sweep.submit()                  # as many of them at once as Slurm lets the user have
sweep.watch()                   # table and curves, live, while the notebook goes on
sweep.search_here()             # in place of both: in this session, one trial after the other
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import optuna
import studies
from board import Buttons, SweepView

sys.path += [
    str(Path(__file__).resolve().parent.parent / name) for name in ("distributed", "slurm")
]
import jobs
from plans import Plan
from runs.job_array import JobArray
from runs.programs import print_lines

# Drawing takes a part of a second of the session's processors.
DRAW_SECONDS = 2.0
# What notebooks use.
__all__ = ["Sweep", "best_of", "jobs", "studies"]


class Sweep:
    """A study's folder, and the job array that works on it."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        """Find the study of a folder, or begin it."""
        # A job starts in this folder, where a path from here would lead elsewhere.
        folder = folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.plan = folder, plan
        self.array = JobArray(folder)
        s = plan.settings
        self.study = studies.opened(folder, s["direction"], s["seed"], s["unpruned_steps"])

    def is_done(self) -> bool:
        """Whether all trials have come to their end."""
        return self._ended_trials() >= int(self.plan.settings["trials"])

    def search_here(self) -> None:
        """Try in this session, one trial after the other; table and curves, live.

        Raises:
            PlanError: an array works on the study, whose trials would be begun twice.
            SystemExit: the program failed; what it printed says how.

        """
        self.array.refuse_beside()
        studies.interrupt_all(self.study)
        argv = [sys.executable, str(self.plan.program), "--results", str(self.folder)]
        for key, value in self.plan.settings.items():
            argv += [f"--{key.replace('_', '-')}", str(value)]
        view, shown_at = self._view(), -DRAW_SECONDS
        view.show(self.study, self._progress())

        def show() -> None:
            nonlocal shown_at
            if time.monotonic() - shown_at >= DRAW_SECONDS:
                view.show(self.study, self._progress())
                shown_at = time.monotonic()

        code = print_lines(argv, show)
        view.show(self.study, self._progress())
        if code != 0:
            raise SystemExit("The program failed: see above")

    def submit(self) -> int:
        """Submit the array, unless one works on the study already; return its number.

        What earlier processes left unfinished is begun again.
        """
        if self.array.number and self.array.tasks():
            return self.array.number
        studies.interrupt_all(self.study)
        return self.array.submit(self.plan)

    def cancel(self) -> None:
        """End all tasks; what they were trying is begun again by `submit`."""
        self.array.cancel()

    def watch(self) -> "asyncio.Task[None]":
        """Show how it goes, live; the kernel stays free for other cells."""

        def resume() -> None:
            self.submit()
            self._follow(view, buttons)

        buttons = Buttons(self.cancel, resume)
        view = self._view()
        return self._follow(view, buttons)

    def _follow(self, view: SweepView, buttons: Buttons) -> "asyncio.Task[None]":
        def show(tasks: Mapping[str, int]) -> None:
            words = f"{self._progress()}; {self.array.words(tasks)}"
            view.show(self.study, words, "" if self.is_done() else self.array.failure(tasks))
            buttons.switch(is_running=bool(tasks), is_done=self.is_done())

        return self.array.follow(show)

    def _view(self) -> SweepView:
        return SweepView(int(self.plan.settings["trials"]))

    def _progress(self) -> str:
        return f"{self._ended_trials()} of {self.plan.settings['trials']} trials done"

    def _ended_trials(self) -> int:
        return sum(trial.state.is_finished() for trial in studies.counted(self.study))


def best_of(study: optuna.Study) -> str:
    """Say which trial was best; empty before the first has come to its end."""
    complete = [
        t
        for t in study.get_trials(deepcopy=False)
        if t.value is not None and t.state.name == "COMPLETE"
    ]
    if not complete:
        return ""
    best = study.best_trial
    return f"best: trial {best.number}, {best.value:.6g}\n{json.dumps(best.params, indent=1)}"
