"""Configuration of JupyterLab's page: the portal's look, and what the folders in the home are for.

It goes into the page itself, so that nothing is asked for later and nothing changes its colour
after it was drawn. Read by portal/dsportal/lab/src/look/look.ts and launcher/welcome.ts.
"""

import json
from collections.abc import Mapping


def page_config(
    look: Mapping[str, str], folders: Mapping[str, str], notes: Mapping[str, str], templates: str
) -> dict[str, str]:
    """Give the options of JupyterLab's page: ``portalLook`` and ``portalFolders``, as JSON.

    The folder with the templates is the first.
    """
    listed = [
        {"name": name, "target": target, "note": notes.get(name, "")}
        | {"has_templates": name == templates}
        for name, target in sorted(folders.items(), key=lambda folder: folder[0] != templates)
    ]
    return {"portalLook": json.dumps(dict(look)), "portalFolders": json.dumps(listed)}
