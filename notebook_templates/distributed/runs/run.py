"""A training or a measurement as a Slurm job: submitted, found again, watched."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plans import Plan, PlanError, script
from record import FREE, write_json

from runs.submitted import Submitted
from runs.views import View

# jobs.py is among the templates for Slurm.
sys.path += [str(Path(__file__).resolve().parents[2] / "slurm")]
import jobs

__all__ = ["Run", "here", "jobs", "start"]

# A model of trees with more rounds is compared with the one before: it is another run.
_MAY_CHANGE = FREE - {"rounds"}


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

    def is_this(run: Run) -> bool:
        return run.job is None or (run.summary() is None and run.asked() == plan.asked)

    run = _first(plan, base, is_this)
    if run.job is not None and not run.job.state().is_over:
        return run
    _ask(run, plan)
    (run.folder / "job.sh").write_text(script(plan, run.folder))
    run.submit()
    return run


def here(plan: Plan, base: Path) -> Run:
    """Find the run that was asked for the same in this session, or make the next one's folder.

    The program itself resumes what it finds there: with more steps, it is the same run.
    """
    wanted = _lasting(plan.asked)

    def is_this(run: Run) -> bool:
        asked = run.asked()
        return run.job is None and (asked is None or _lasting(asked) == wanted)

    run = _first(plan, base, is_this)
    _ask(run, plan)
    return run


def _lasting(asked: dict[str, Any]) -> dict[str, Any]:
    """Leave out what may be another when a program resumes, however it is spelt."""
    settings = asked["settings"].items()
    kept = {name: value for name, value in settings if name.replace("-", "_") not in _MAY_CHANGE}
    return {**asked, "settings": kept}


def _first(plan: Plan, base: Path, is_this: Callable[[Run], bool]) -> Run:
    """Return the first run of the plan's name that is the one; its folder may not be there yet."""
    for number in range(1, 10_000):
        run = Run(_numbered(base, plan.name, number))
        if is_this(run):
            return run
    raise PlanError(f"{base} has thousands of runs named {plan.name}")


def _ask(run: Run, plan: Plan) -> None:
    """Write into the run's folder what was asked for."""
    run.folder.mkdir(parents=True, exist_ok=True)
    # On a full disk, what was asked for before stays: by that the run is found again.
    write_json(run.folder / "asked.json", plan.asked)


def _numbered(base: Path, name: str, number: int) -> Path:
    return base / (name if number == 1 else f"{name}-{number}")
