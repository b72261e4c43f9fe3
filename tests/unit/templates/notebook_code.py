"""The code of the template notebooks, read and not run."""

import ast
import json
from pathlib import Path


def code_of(notebook: Path) -> list[ast.stmt]:
    """Return the statements of all cells."""
    cells = json.loads(notebook.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    # A cell may await, which is no statement of a module's own.
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    trees = (compile(cell, str(notebook), "exec", flags) for cell in code)
    return [line for tree in trees if isinstance(tree, ast.Module) for line in tree.body]


def parameters_of(lines: list[ast.stmt]) -> dict[str, str]:
    """Return what names are set to, as code."""
    return {
        target.id: ast.unparse(line.value)
        for line in lines
        if isinstance(line, ast.Assign)
        for target in line.targets
        if isinstance(target, ast.Name)
    }


def handed_to_plan(lines: list[ast.stmt]) -> dict[str | None, str]:
    """Return what a notebook's only plan is given, as code."""
    (plan,) = (
        call
        for line in lines
        for call in ast.walk(line)
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Plan")
    )
    return {word.arg: ast.unparse(word.value) for word in plan.keywords}
