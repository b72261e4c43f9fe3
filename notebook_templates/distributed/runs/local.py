"""A training in this session, without a job: its lines, a bar and curves, as it goes on."""

import html
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plans import Plan

from runs import views
from runs.programs import print_lines
from runs.run import Run, here, jobs

# Drawing takes a part of a second of the session's processors.
DRAW_SECONDS = 2.0


class Screen:
    """What is shown below the cell, drawn again and again."""

    def __init__(self, run: Run) -> None:
        """Show nothing yet."""
        self._run = run
        self._drawn_at = -DRAW_SECONDS
        self._drawn_lines = 0
        self._bar: Any = None
        self._picture: Any = None

    def refresh(self) -> None:
        """Draw what has been reached, unless that was done a moment ago."""
        if time.monotonic() - self._drawn_at >= DRAW_SECONDS:
            self._draw(is_complete=False)

    def end(self, *, is_complete: bool) -> None:
        """Draw what has been reached; a training that came to its end fills the bar."""
        self._draw(is_complete=is_complete)

    def _draw(self, *, is_complete: bool) -> None:
        lines = self._run.progress()
        reports = views.reports_of(lines)
        if not reports or (len(lines) == self._drawn_lines and not is_complete):
            return
        self._drawn_lines = len(lines)
        self._show(bar(reports[-1], is_complete=is_complete), views.curves(reports))
        self._drawn_at = time.monotonic()

    def _show(self, bar_html: str, curves: bytes) -> None:
        from IPython.display import HTML, Image, display

        shown = HTML(bar_html), Image(curves, format="png", width=900)
        if self._bar is None:
            self._bar, self._picture = (display(one, display_id=True) for one in shown)
        else:
            self._bar.update(shown[0])
            self._picture.update(shown[1])


def bar(line: Mapping[str, Any], *, is_complete: bool) -> str:
    """Return a progress bar in HTML, with the last line of progress in words.

    A training may come to its end early, when it learns no more.
    """
    done = line["step"]
    whole = done if is_complete else line["steps"]
    words = html.escape(views.figures(line))
    return f'<progress max="{whole}" value="{done}" aria-label="Training"></progress> {words}'


def failure(code: int) -> str:
    """Say how a program failed that has not said why itself."""
    if code == -signal.SIGKILL:
        return (
            "The program was killed. Most often the session has run out of memory: set a smaller "
            "batch, or start a session with more memory"
        )
    if code < 0:
        return f"The program was ended by {signal.Signals(-code).name}: see above"
    return "The program failed: see above"


def train_here(plan: Plan, base: Path) -> Run:
    """Train in this session, as one process, and return the run when that has come to its end.

    Raises:
        SystemExit: it failed; the text says how.

    """
    run = here(plan, base)
    print("Folder", run.folder)
    options = [f"--{key.replace('_', '-')}={value}" for key, value in plan.settings.items()]
    argv = [sys.executable, str(plan.program), "--results", str(run.folder), *options]
    error = run.folder / "error.txt"
    error.unlink(missing_ok=True)
    screen = Screen(run)
    code = print_lines(argv, screen.refresh)
    screen.end(is_complete=code == 0)
    if code != 0:
        raise SystemExit(jobs.tail(error) or failure(code))
    return run
