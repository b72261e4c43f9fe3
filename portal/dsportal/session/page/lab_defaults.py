"""Defaults for JupyterLab that differ from its own: the toolbar, light and dark, extensions.

Light and dark follow the system, as on the other pages, until one is chosen: JupyterLab then writes
that it does not follow any more into the user's settings, which count more. (While it follows, it
writes down which theme that led to.)
"""

import json
from collections.abc import Collection
from pathlib import Path

from dsportal.session.page.extensions import EXTENSIONS, switched_off

_FOLLOWS_SYSTEM = {"@jupyterlab/apputils-extension:themes": {"adaptive-theme": True}}
# What a template is opened for takes one click; JupyterLab has it in a menu only, and in its place
# what also restarts the kernel, and asks first. There is no room for both beside a kernel's name.
_RUN_ALL = {
    "@jupyterlab/notebook-extension:panel": {
        "toolbar": [
            {"name": "restart-and-run", "disabled": True},
            {
                "name": "run-all",
                "command": "notebook:run-all-cells",
                "label": "Run All",
                "caption": "Run all cells of this notebook, from the first",
                "rank": 34,
            },
        ]
    }
}


def write(folder: Path, extensions: Collection[str], follows_system: bool) -> Path:
    """Write what JupyterLab takes as its ``app_settings_dir`` below a folder; return where."""
    overrides: dict[str, object] = {**_RUN_ALL, **(_FOLLOWS_SYSTEM if follows_system else {})}
    for name in extensions:
        overrides |= EXTENSIONS[name].defaults
    written = folder / "lab-settings"
    written.mkdir(exist_ok=True)
    (written / "overrides.json").write_text(json.dumps(overrides))
    # Those that this file switches off do not switch off others.
    page = {"disabledExtensions": {name: True for name in switched_off(extensions)}}
    (written / "page_config.json").write_text(json.dumps(page))
    return written
