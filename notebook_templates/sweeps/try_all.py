#!/usr/bin/env python
"""Work on a sweep: try hyper-parameters until the study has all its trials.

    python try_all.py --results sweep1 --objective objective.py:objective --trials 20

Any number of these may work on the same folder, on any node: a job array's tasks do. Ended by
Slurm or by a user, one leaves its trial to the next that comes.
"""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "distributed"))
import optuna
import own_function
import studies
from optuna.trial import TrialState
from record import run


class TrialInterrupted(BaseException):
    """Slurm, or a user, wants this process to end."""


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="the study's folder; several nodes must share it")
    add("--objective", required=True, help="FILE.py:FUNCTION: takes a trial, returns a value")
    add("--trials", type=int, default=20, help="of the study; more with the same folder continue")
    add("--direction", default="maximize", choices=("maximize", "minimize"), help="of the value")
    add("--unpruned-steps", type=int, default=2, help="reports before pruning; -1: none is pruned")
    add("--seed", type=int, default=1, help="of what is tried; with one process it decides all")
    return parser.parse_args()


class Interruption:
    """Ends the user's function when a signal comes, but nothing that is half written."""

    def __init__(self) -> None:
        """Listen to Slurm's signals."""
        self.by, self._is_inside = "", False
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._note)

    def _note(self, number: int, _frame: object) -> None:
        first, self.by = not self.by, self.by or signal.Signals(number).name
        if first and self._is_inside:
            raise TrialInterrupted

    def call(self, function: Callable[[optuna.Trial], float], trial: optuna.Trial) -> float:
        """Call the function; raises `TrialInterrupted` when a signal comes or has come."""
        self._is_inside = True
        try:
            if self.by:
                raise TrialInterrupted
            return float(function(trial))
        finally:
            self._is_inside = False


def main(s: argparse.Namespace) -> None:
    """Try until there are all trials."""
    # A trial keeps its folder's path, for whoever continues it from wherever.
    folder = Path(s.results).expanduser().absolute()
    folder.mkdir(parents=True, exist_ok=True)
    objective = own_function.find(s.objective)
    # Each process draws others; which, follows from the trials that there are.
    task = int(os.environ.get("SLURM_ARRAY_TASK_ID", "0"))
    study = studies.opened(folder, s.direction, s.seed * 10_000_000 + task, s.unpruned_steps)
    interruption = Interruption()
    while not interruption.by and (trial := studies.begun(study, folder, s.trials)):
        tried(study, trial, lambda trial: interruption.call(objective, trial))
    if interruption.by:
        print(f"interrupted by {interruption.by}", flush=True)


def tried(
    study: optuna.Study, trial: optuna.Trial, objective: Callable[[optuna.Trial], float]
) -> None:
    """Try, and write down the result; a trial that fails is not the end of the others."""
    try:
        value = objective(trial)
    except optuna.TrialPruned:
        study.tell(trial, state=TrialState.PRUNED)
        print(f"trial {trial.number} pruned: {trial.params}", flush=True)
    except TrialInterrupted:
        studies.interrupted(study, trial)
    except Exception:  # noqa: BLE001  # the user's function; all that ends it is told
        study.tell(trial, state=TrialState.FAIL)
        text = traceback.format_exc()
        (Path(trial.user_attrs[studies.FOLDER]) / "error.txt").write_text(text)
        print(f"trial {trial.number} failed: {trial.params}\n{text}", flush=True)
    else:
        study.tell(trial, value)
        print(f"trial {trial.number}: {value:.6g} {trial.params}", flush=True)


if __name__ == "__main__":
    run(main, settings(), own_function.FunctionError, studies.StudyError)
