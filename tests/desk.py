"""A user who runs the template notebooks in a session."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.instance import ROOT
from tests.visitor import Visitor

PATIENCE = 120.0
# Matplotlib's, once in a home, where it has taken five seconds.
_ON_SLOW_MACHINES = "Matplotlib is building the font cache"


@dataclass
class Desk:
    """A user at the notebooks."""

    user: Visitor
    home: Path
    patience: float = PATIENCE
    """Seconds that a cell may take."""

    def run_all(
        self, kernel: str, notebook: str = "distributed/resnet.ipynb", **parameters: Any
    ) -> str:
        """Run a template's cells with these parameters; return all that they wrote.

        Fails if the job completed and anything was written to standard error.
        """
        usual, *codes = codes_of(notebook)
        return self._run(kernel, usual + _assigned(parameters), *codes)

    def run_from(self, kernel: str, notebook: str, cell: int, **parameters: Any) -> str:
        """Run the cells from one on again, where all have run; return all that they wrote.

        Cells with code are counted, from 0. The parameters are those that have changed meanwhile.
        """
        return self._run(kernel, _assigned(parameters), *codes_of(notebook)[cell:])

    def _run(self, kernel: str, *codes: str) -> str:
        red: list[str] = []
        said = "".join(
            self.user.run_in(kernel, code, seconds=self.patience, stderr=red) for code in codes
        )
        if "The job completed" in said:
            assert [text for text in red if _ON_SLOW_MACHINES not in text] == []
        return said


def codes_of(notebook: str) -> list[str]:
    """Return the code of a template's cells."""
    cells = json.loads((ROOT / "notebook_templates" / notebook).read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def _assigned(parameters: Mapping[str, Any]) -> str:
    return "".join(f"\n{name} = {value!r}" for name, value in parameters.items())
