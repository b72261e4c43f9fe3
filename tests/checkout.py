"""This checkout, for the processes that tests start."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = [str(ROOT / "portal"), str(ROOT / "spawner")]
"""Where Python finds our packages."""
PYTHONPATH = os.pathsep.join(PACKAGES)
