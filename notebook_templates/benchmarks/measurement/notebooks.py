"""Run notebooks from a notebook: their cells one after the other, with other parameters.

IPython's ``%run`` takes no parameters, and papermill shows nothing before the end; here progress
and buttons of what runs are seen, and can be used.
"""

import ast
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class NotebookError(RuntimeError):
    """A notebook did not come to its end; the message says why."""


async def run(notebook: Path, parameters: Mapping[str, Any]) -> None:
    """Run a notebook's code in a namespace of its own; what it displays is shown here.

    Its first cell with the tag ``parameters`` sets the defaults, as for papermill. Raises
    `NotebookError` for a parameter that it has not got, and for whatever ends it.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in _code_cells(notebook):
        try:
            await _run_cell("".join(cell["source"]), f"{notebook.name}[{number}]", names)
        except (Exception, SystemExit) as error:
            said = error if isinstance(error, SystemExit) else repr(error)
            raise NotebookError(f"{notebook.name}: {said}") from error
        if "parameters" in cell["metadata"].get("tags", ()):
            unknown = ", ".join(sorted(parameters.keys() - names.keys()))
            if unknown:
                raise NotebookError(f"{notebook.name} has no parameter {unknown}")
            names |= parameters


def _code_cells(notebook: Path) -> list[tuple[int, dict[str, Any]]]:
    cells = json.loads(notebook.read_text())["cells"]
    return [(number, cell) for number, cell in enumerate(cells) if cell["cell_type"] == "code"]


async def _run_cell(source: str, name: str, names: dict[str, Any]) -> None:
    code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    # The cells of a template, as the user who opened them would run them.
    waiting = eval(code, names)  # noqa: S307
    if inspect.iscoroutine(waiting):
        await waiting
