"""A training or a measurement as a Slurm job: begun, found again, watched.

run = runs.start(runs.Plan(...), Path("~/logs/resnet").expanduser())
run.watch()                     # how it goes, live, while the notebook goes on
runs.table(base)                # finished trainings side by side
"""

import asyncio
import sys
from pathlib import Path

from plans import PROGRAM, Plan, PlanError, script
from speedups import markdown, table
from submitted import Submitted
from views import View

# jobs.py is among the templates for Slurm.
sys.path += [str(Path(__file__).resolve().parent.parent / "slurm")]
import jobs

# What notebooks use.
__all__ = ["PROGRAM", "Plan", "PlanError", "Run", "jobs", "markdown", "start", "table"]


class Run(Submitted):
    """A run, its folder, and its job."""

    def watch(self) -> "asyncio.Task[jobs.JobStatus]":
        """Show how it goes, live; the kernel stays free for other cells."""
        return View(self).watch()


def start(plan: Plan, base: Path) -> Run:
    """Submit a run whose folder is below ``base``, or find the one that runs already.

    A run of the same name that waits or runs is this one: the kernel was restarted meanwhile. One
    that is over stays as it is, and the new one gets a number.
    """
    base.mkdir(parents=True, exist_ok=True)
    for folder in (_numbered(base, plan.name, number) for number in range(1, 10_000)):
        run = Run(folder)
        if run.job is not None:
            # Slurm is not asked for a run that came to its end.
            if run.summary() is None and not run.job.state().is_over:
                return run
            continue
        folder.mkdir(exist_ok=True)
        (folder / "job.sh").write_text(script(plan, folder))
        run.submit()
        return run
    raise PlanError(f"{base} has thousands of runs named {plan.name}")


def _numbered(base: Path, name: str, number: int) -> Path:
    return base / (name if number == 1 else f"{name}-{number}")
