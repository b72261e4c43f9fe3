"""The hub's pages without a hub: our templates over JupyterHub's, and its static files."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader
from jupyterhub._data import DATA_FILES_PATH

from dsportal.look import WEB

_JUPYTERHUB = Path(DATA_FILES_PATH)
STATIC = _JUPYTERHUB / "static"
_THEIRS = FileSystemLoader(_JUPYTERHUB / "templates")
# As JupyterHub has them: its own ones are below templates/, too.
_TEMPLATES = Environment(
    autoescape=True,
    loader=ChoiceLoader([PrefixLoader({"templates": _THEIRS}), FileSystemLoader(WEB), _THEIRS]),
)
_LOOK = SimpleNamespace(
    title="Portal", support="", support_url="", version="", documentation_dir=""
)


def user(*sessions: SimpleNamespace) -> SimpleNamespace:
    """Return somebody who has these named sessions."""
    return SimpleNamespace(
        name="ada",
        escaped_name="ada",
        json_escaped_name="ada",
        admin=False,
        spawner=SimpleNamespace(options_form=""),
        all_spawners=lambda include_default: sessions,
        server_url=lambda name="": f"/user/ada/{name}",
    )


def rendered(template: str, **told: Any) -> str:
    """Return a page as the hub would show it to whom ``user`` is."""
    usual = {
        "look": _LOOK,
        "base_url": "/hub/",
        "prefix": "/",
        "static_url": lambda path, include_version=True: f"/hub/static/{path}",
        "services": [],
        "parsed_scopes": {},
        "logout_url": "/hub/logout",
        "xsrf_token": "token",
    }
    return _TEMPLATES.get_template(template).render(**(usual | told))
