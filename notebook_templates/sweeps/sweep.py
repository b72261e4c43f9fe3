"""A sweep from a notebook: a job array whose tasks work on one study, cancelled and resumed.

sweep = Sweep(folder, plan)     # a Plan of try_all.py, with `array` tasks
sweep.submit()                  # as many of them at once as Slurm lets the user have
sweep.watch()                   # table and curves, live, while the notebook goes on
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import optuna
import studies
from board import SweepView

sys.path += [
    str(Path(__file__).resolve().parent.parent / name) for name in ("distributed", "slurm")
]
import jobs
from plans import Plan
from runs.job_array import JobArray

# What notebooks use.
__all__ = ["Sweep", "best_of", "jobs", "studies"]


class Sweep:
    """A study's folder, and the job array that works on it."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        """Find the study of a folder, or begin it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.plan = folder, plan
        self.array = JobArray(folder)
        s = plan.settings
        self.study = studies.opened(folder, s["direction"], s["seed"], s["unpruned_steps"])

    def is_done(self) -> bool:
        """Whether all trials have come to their end."""
        counted = studies.counted(self.study)
        ended = [trial for trial in counted if trial.state.is_finished()]
        return len(ended) >= int(self.plan.settings["trials"])

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
        board = SweepView(self.cancel, self._resume)
        return self._follow(board)

    def _resume(self, board: SweepView) -> None:
        self.submit()
        self._follow(board)

    def _follow(self, board: SweepView) -> "asyncio.Task[None]":
        return self.array.follow(
            lambda tasks: board.show(self.study, self._words(tasks), bool(tasks), self.is_done())
        )

    def _words(self, tasks: Mapping[str, int]) -> str:
        wanted = self.plan.settings["trials"]
        ended = sum(trial.state.is_finished() for trial in studies.counted(self.study))
        return f"{ended} of {wanted} trials done; {self.array.words(tasks)}"


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
