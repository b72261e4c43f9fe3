"""Measurements of the portal of this checkout: ``python -m benchmarks.portal.NAME``."""

import sys
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_REPOSITORY / name) for name in ("portal", "spawner")]
