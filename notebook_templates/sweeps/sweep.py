"""A sweep from a notebook: a job array whose tasks work on one study, cancelled and resumed.

sweep = Sweep(folder, plan)     # a Plan of try_all.py, with `array` tasks
sweep.submit()                  # as many of them at once as Slurm lets the user have
sweep.watch()                   # table and curves, live, while the notebook goes on
"""

import asyncio
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import optuna
import studies
from board import SweepView

sys.path += [
    str(Path(__file__).resolve().parent.parent / name) for name in ("distributed", "slurm")
]
import jobs
from plans import Plan, script

LOOK_SECONDS = 3.0
# sbatch's words for more tasks than a user may submit, or than any array may have (MaxArraySize).
TOO_MANY = re.compile("job submit limit|Invalid job array specification|MaxSubmit")


class Sweep:
    """A study's folder, and the job array that works on it."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        """Find the study of a folder, or begin it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.plan = folder, plan
        s = plan.settings
        self.study = studies.opened(folder, s["direction"], s["seed"], s["unpruned_steps"])

    @property
    def number(self) -> int | None:
        """The array's job number, of the one that was submitted last."""
        try:
            return int((self.folder / "job.txt").read_text())
        except (OSError, ValueError):
            return None

    def tasks(self) -> dict[str, int]:
        """Count the array's tasks that wait and run, by Slurm's word; empty: it is over."""
        return jobs.array_tasks(self.number) if self.number else {}

    def is_done(self) -> bool:
        """Whether all trials have come to their end."""
        counted = studies.counted(self.study)
        ended = [trial for trial in counted if trial.state.is_finished()]
        return len(ended) >= int(self.plan.settings["trials"])

    def submit(self) -> int:
        """Submit the array, unless one works on the study already; return its number.

        What earlier processes left unfinished is begun again.
        """
        if self.number and self.tasks():
            return self.number
        studies.interrupt_all(self.study)
        (self.folder / "error.txt").unlink(missing_ok=True)
        plan = self.plan
        while True:
            (self.folder / "job.sh").write_text(script(plan, self.folder))
            try:
                number = jobs.submit(self.folder / "job.sh", folder=self.folder).number
                break
            except jobs.SlurmCommandError as error:
                if plan.array == 1 or not TOO_MANY.search(str(error)):
                    raise
                # Each task works until all trials are done: fewer of them do the same.
                plan = replace(plan, array=plan.array // 2)
        (self.folder / "job.txt").write_text(f"{number}\n")
        return number

    def cancel(self) -> None:
        """End all tasks; what they were trying is begun again by `submit`."""
        if self.number:
            jobs.BatchJob(self.number).cancel()

    def watch(self) -> "asyncio.Task[None]":
        """Show how it goes, live; the kernel stays free for other cells."""
        board = SweepView(self.cancel, self._resume)
        return self._follow(board)

    def _resume(self, board: SweepView) -> None:
        self.submit()
        self._follow(board)

    def _follow(self, board: SweepView) -> "asyncio.Task[None]":
        async def look() -> None:
            while True:
                try:
                    tasks = await asyncio.to_thread(self.tasks)
                except jobs.SlurmCommandError:
                    # A question that fails changes nothing and is asked again.
                    await asyncio.sleep(LOOK_SECONDS)
                    continue
                board.show(self.study, self._words(tasks), bool(tasks), self.is_done())
                if not tasks:
                    return
                await asyncio.sleep(LOOK_SECONDS)

        self._task = asyncio.get_running_loop().create_task(look())
        return self._task

    def _words(self, tasks: dict[str, int]) -> str:
        said = ", ".join(f"{count} {word.lower()}" for word, count in sorted(tasks.items()))
        wanted = self.plan.settings["trials"]
        ended = sum(trial.state.is_finished() for trial in studies.counted(self.study))
        return f"{ended} of {wanted} trials done; job array {self.number}: {said or 'over'}"


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
