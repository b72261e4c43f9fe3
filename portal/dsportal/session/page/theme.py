"""Light and dark: JupyterLab follows the system, as the other pages do, until one is chosen."""

from pathlib import Path

import json5

SETTINGS = Path(__file__).parent / "lab_settings"
"""What JupyterLab takes as its ``app_settings_dir``: defaults that differ from its own."""

_CHOICE = ".jupyter/lab/user-settings/@jupyterlab/apputils-extension/themes.jupyterlab-settings"


def has_chosen(home: Path) -> bool:
    """Say whether the user has chosen a theme; one who did keeps it, whatever the default is."""
    try:
        chosen = json5.loads((home / _CHOICE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(chosen, dict) and "theme" in chosen


def lab_settings(home: Path, is_wanted: bool) -> dict[str, str]:
    """Give what is set of JupyterLab so that it follows the system's light and dark."""
    follows = is_wanted and not has_chosen(home)
    return {"app_settings_dir": str(SETTINGS)} if follows else {}
