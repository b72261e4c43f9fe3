"""Inference over many files from a notebook: a job array, watched, cancelled and resumed.

batch = FileBatch(folder, plan)     # a Plan of infer_files.py, with `array` tasks
batch.submit()                      # files that are done are not done again
batch.watch()                       # progress, live, while the notebook goes on
batch.table()                       # what has been found so far
"""

import asyncio
import html
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import model_folders
import pandas
from file_results import FileResults, list_files, listed

sys.path += [
    str(Path(__file__).resolve().parent.parent / name) for name in ("distributed", "slurm")
]
from plans import Plan, PlanError
from runs.job_array import JobArray


class FileBatch:
    """A run's folder, its files, and the job array that works on them."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        """Find the run of a folder, or begin it; raises `PlanError` for a run of something else."""
        # A job starts in the run's folder, where a path from here would lead elsewhere.
        folder = folder.absolute()
        places = {name: Path(plan.settings[name]).absolute() for name in ("model", "data")}
        plan = replace(plan, settings={**plan.settings, **places})
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.plan = folder, plan
        self.array, self._results = JobArray(folder), FileResults(folder)
        self._model = model_folders.described(Path(plan.settings["model"]))
        # What makes results what they are: not how many files are computed at once.
        asked = {name: str(plan.settings[name]) for name in ("model", "data", "max_tokens")}
        asked["weights_written"] = str(self._model.modified)
        file = folder / "asked.json"
        if not file.exists():
            file.write_text(json.dumps(asked, indent=1))
        elif json.loads(file.read_text()) != asked:
            raise PlanError(
                f"{folder} has the results of another model, other data or other options: set "
                "another name for this run"
            )

    def files(self) -> list[str]:
        """Return the files that were there when the array was submitted last."""
        return listed(self.folder)

    def is_done(self) -> bool:
        """Whether every file has a result."""
        return bool(self.files()) and len(self._results.done()) == len(self.files())

    def submit(self) -> None:
        """Look for new files, and submit an array for all that are not done, if there are any.

        Where an array works on them already, that is it.
        """
        if self.array.tasks():
            return
        left = len(self._list()) - len(self._results.done())
        if left:
            self.array.submit(replace(self.plan, array=min(self.plan.array, left)))

    def list_here(self) -> None:
        """Look for new files, for a run in this session.

        Raises `PlanError` where an array works on them: it would do the same files.
        """
        self.array.refuse_beside()
        self._list()

    def _list(self) -> list[str]:
        return list_files(self.folder, Path(self.plan.settings["data"]), self._model.kind)

    def cancel(self) -> None:
        """End all tasks; `submit` does the files that are left."""
        self.array.cancel()

    def watch(self) -> "asyncio.Task[None]":
        """Show how it goes, live; the kernel stays free for other cells."""
        return self._follow(BatchView(self.cancel, self._resume))

    def table(self) -> Any:
        """Return what has been found so far, a row for each file that is done."""
        return pandas.DataFrame([_row(line) for line in self._results.lines()])

    def _resume(self, view: "BatchView") -> None:
        self.submit()
        self._follow(view)

    def _follow(self, view: "BatchView") -> "asyncio.Task[None]":
        def show(tasks: Mapping[str, int]) -> None:
            done, wanted = len(self._results.done()), len(self.files())
            view.show(done, wanted, f"{done} of {wanted} files done; {self.array.words(tasks)}")
            view.tell("" if done == wanted else self.array.failure(tasks))
            view.enable(is_running=bool(tasks), is_done=done == wanted)

        return self.array.follow(show)


class BatchView:
    """How far a batch is, and the buttons Cancel and Resume."""

    def __init__(self, cancel: Any, resume: Any) -> None:
        """Show it below the cell."""
        from IPython.display import display
        from ipywidgets import HTML, Button, HBox, IntProgress, VBox

        self._state, self._failure = HTML(), HTML()
        self._bar = IntProgress(min=0, max=1, layout={"width": "480px"})
        self._cancel = Button(description="Cancel", icon="stop")
        self._resume = Button(description="Resume", icon="play", disabled=True)
        self._cancel.on_click(lambda _: cancel())
        self._resume.on_click(lambda _: resume(self))
        buttons = HBox([self._cancel, self._resume])
        display(VBox([self._state, self._bar, self._failure, buttons]))

    def show(self, done: int, wanted: int, words: str) -> None:
        """Show how many files are done."""
        self._state.value = f"<b>{html.escape(words)}</b>"
        self._bar.max, self._bar.value = max(1, wanted), done

    def tell(self, failure: str) -> None:
        """Say why a task failed, if one did."""
        self._failure.value = f"<pre>{html.escape(failure)}</pre>" if failure else ""

    def enable(self, *, is_running: bool, is_done: bool) -> None:
        """Let the user do what makes sense now."""
        self._cancel.disabled, self._resume.disabled = not is_running, is_running or is_done


def _row(line: Mapping[str, Any]) -> dict[str, Any]:
    # A name may be any bytes, but a table of pandas has texts alone.
    row = {"file": os.fsencode(line["file"]).decode(errors="backslashreplace")}
    if "classes" in line:
        best = line["classes"][0]
        row |= {"class": best["name"], "probability": best["probability"]}
    return row | {name: line[name] for name in ("text", "error") if name in line}
