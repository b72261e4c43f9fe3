"""JupyterLab's settings in the home: a broken file, which would leave the page blank, is set aside.

A quota that is reached while JupyterLab saves a setting leaves such a file. JupyterLab
(4.6) then gets no settings at all and shows nothing, on each start.
"""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import json5

log = logging.getLogger(__name__)

# Below the home; the readers are those that jupyterlab_server uses.
_FILES: tuple[tuple[str, Callable[[str], Any]], ...] = (
    (".jupyter/lab/user-settings/**/*.jupyterlab-settings", json5.loads),
    (".jupyter/lab/workspaces/*.jupyterlab-workspace", json.loads),
)


def set_broken_files_aside(home: Path) -> None:
    """Rename the files that cannot be read to NAME.broken; their settings are the default."""
    for pattern, read in _FILES:
        try:
            files = list(home.glob(pattern))
        except OSError as error:
            log.warning("JupyterLab's setting %s: %s", home / pattern, error)
            continue
        for file in files:
            _set_aside_if_broken(file, read)


def _set_aside_if_broken(file: Path, read: Callable[[str], Any]) -> None:
    try:
        try:
            read(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            aside = file.with_name(file.name + ".broken")
            file.replace(aside)
            log.warning("JupyterLab's setting was broken, and is now %s: %s", aside, error)
    except OSError as error:
        log.warning("JupyterLab's setting %s: %s", file, error)
