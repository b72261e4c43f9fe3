"""A user who runs the template notebooks in a session."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.instance import ROOT
from tests.visitor import Visitor

PATIENCE = 120.0


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
        """Run a template's cells with these parameters; return all that they wrote."""
        cells = json.loads((ROOT / "notebook_templates" / notebook).read_text())["cells"]
        codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        codes[0] += "".join(f"\n{name} = {value!r}" for name, value in parameters.items())
        return "".join(self.user.run_in(kernel, code, seconds=self.patience) for code in codes)
