"""Trainings and measurements as Slurm jobs, for notebooks: submitted, found again, watched.

run = runs.start(runs.Plan(...), Path("~/logs/resnet").expanduser())
run.watch()                     # progress, live; the kernel stays free for other cells
run = runs.train_here(runs.Plan(...), base)   # one in this session, without a job
runs.table(base)                # finished trainings side by side
"""

from plans import PROGRAM, Plan, PlanError

from runs import epochs, views
from runs.local import train_here
from runs.run import Run, here, jobs, start
from runs.speedups import markdown, table

__all__ = [
    "PROGRAM", "Plan", "PlanError", "Run",
    "epochs", "here", "jobs", "markdown", "start", "table", "train_here", "views",
]  # fmt: skip
