"""A training or a measurement as a Slurm job: begun, found again, watched.

run = runs.start(runs.Plan(...), Path("~/logs/resnet").expanduser())
run.watch()                     # how it goes, live, while the notebook goes on
run = runs.here(runs.Plan(...), base)   # the folder of one in this session, without a job
runs.table(base)                # finished trainings side by side
"""

import asyncio
import json
import sys
from pathlib import Path

import epochs
from plans import PROGRAM, Plan, PlanError, script
from speedups import markdown, table
from submitted import Submitted
from views import View

# jobs.py is among the templates for Slurm.
sys.path += [str(Path(__file__).resolve().parent.parent / "slurm")]
import jobs

# What notebooks use.
__all__ = [
    "PROGRAM", "Plan", "PlanError", "Run", "epochs", "here", "jobs", "markdown", "start", "table",
]  # fmt: skip


class Run(Submitted):
    """A run, its folder, and its job."""

    def watch(self) -> "asyncio.Task[jobs.JobStatus]":
        """Show how it goes, live; the kernel stays free for other cells."""
        return View(self).watch()


def start(plan: Plan, base: Path) -> Run:
    """Submit a run whose folder is below ``base``, find it while it runs, or let it go on.

    A run of the same name that was asked for the same (`Plan.asked`) is this one: where it waits or
    runs, the kernel was restarted meanwhile; where it failed or hit its limit, it is submitted once
    more and goes on from its checkpoint, with the time and the memory that are asked for now. One
    that came to its end stays as it is, as does one that was asked for something else, and the new
    one gets a number.
    """
    base.mkdir(parents=True, exist_ok=True)
    for folder in (_numbered(base, plan.name, number) for number in range(1, 10_000)):
        run = Run(folder)
        job = run.job
        if job is not None:
            if run.summary() is not None or run.asked() != plan.asked:
                continue
            if not job.state().is_over:
                return run
        folder.mkdir(exist_ok=True)
        (folder / "asked.json").write_text(json.dumps(plan.asked, indent=1))
        (folder / "job.sh").write_text(script(plan, folder))
        run.submit()
        return run
    raise PlanError(f"{base} has thousands of runs named {plan.name}")


def here(plan: Plan, base: Path) -> Run:
    """Find the run that was asked for the same in this session, or make the next one's folder.

    The program itself resumes what it finds there.
    """
    for folder in (_numbered(base, plan.name, number) for number in range(1, 10_000)):
        run = Run(folder)
        if run.job is None and run.asked() in (None, plan.asked):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "asked.json").write_text(json.dumps(plan.asked, indent=1))
            return run
    raise PlanError(f"{base} has thousands of runs named {plan.name}")


def _numbered(base: Path, name: str, number: int) -> Path:
    return base / (name if number == 1 else f"{name}-{number}")
