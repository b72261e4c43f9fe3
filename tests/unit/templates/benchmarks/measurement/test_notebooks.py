"""Notebooks that another notebook runs."""

import asyncio
import json
from pathlib import Path

import pytest

from measurement import notebooks

CELLS = [
    ("markdown", "# Words", []),
    ("code", "times = 2", ["parameters"]),
    ("code", "import asyncio\nawait asyncio.sleep(0)", []),
    ("code", "print(times * 21)", []),
    ("code", "if times > 2:\n    raise SystemExit('too often')\n1 / times", []),
]


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    cells = [
        {"cell_type": kind, "source": source.splitlines(keepends=True), "metadata": {"tags": tags}}
        for kind, source, tags in CELLS
    ]
    file = tmp_path / "some.ipynb"
    file.write_text(json.dumps({"cells": cells}))
    return file


def test_a_notebook_runs_with_its_own_parameters_and_with_others(
    notebook: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(notebooks.run(notebook, {}))
    asyncio.run(notebooks.run(notebook, {"times": 1}))
    assert capsys.readouterr().out.split() == ["42", "21"]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"times": 3}, r"some\.ipynb: too often"),
        ({"times": 0}, r"some\.ipynb: ZeroDivisionError"),
        ({"time": 3}, r"some\.ipynb has no parameter time"),
    ],
)
def test_what_ends_a_notebook_is_said(
    notebook: Path, parameters: dict[str, int], said: str
) -> None:
    with pytest.raises(notebooks.NotebookError, match=said):
        asyncio.run(notebooks.run(notebook, parameters))
