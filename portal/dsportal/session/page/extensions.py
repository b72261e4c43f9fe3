"""Extensions of a session's JupyterLab, as ``session.extensions`` names them.

Others' extensions, parts of JupyterLab, and three parts of our own. All are in the session's
environment; one that is not wanted is switched off, in the page and in the server. Tried with
jupyterlab-git 0.55, jupyterlab-lsp 5.3, jupyterlab-execute-time 3.3, jupyterlab-code-formatter 3.1
and jupyterlab-search-replace 1.1.
"""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Git's extension brings it along. Its buttons would ask a server part that is not loaded; Git's
# panel shows differences of notebooks by itself.
_NEVER = ("nbdime-jupyterlab",)


@dataclass(frozen=True)
class ServerPart:
    """Server side of an extension."""

    module: str
    addresses: str
    """A pattern of its routes, below the server's base URL."""
    imports: tuple[str, ...] = ()
    """What the module imports when it is loaded only."""


@dataclass(frozen=True)
class LabExtension:
    """JupyterLab extension: its plugins, server part and default settings."""

    page: str
    """Its name in JupyterLab's page, or that of one of its plugins."""
    server: ServerPart | None = None
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of JupyterLab's plugins that differ from their own defaults."""
    of_lab: tuple[str, ...] = ()
    """JupyterLab's own plugins that are of use with it only; they would ask its server part."""


EXTENSIONS: Mapping[str, LabExtension] = {
    "git": LabExtension(
        "@jupyterlab/git",
        ServerPart("jupyterlab_git", r"git/.*", ("jupyterlab_git.handlers",)),
        # Homes are on a file server: each look walks the whole repository.
        {"@jupyterlab/git:plugin": {"refreshInterval": 10_000}},
    ),
    "lsp": LabExtension(
        "@jupyter-lsp/jupyterlab-lsp",
        ServerPart("jupyter_lsp", r"lsp/.*"),
        {
            # JupyterLab's own part, which the extension builds on, is off by default.
            "@jupyterlab/lsp-extension:plugin": {"activate": "on"},
            # pyflakes says so of an `await` outside a function, too, which a notebook may have.
            "@jupyter-lsp/jupyterlab-lsp:diagnostics": {
                "ignoreMessagesPatterns": ["'yield' outside function"]
            },
        },
        (
            "@jupyterlab/lsp-extension",
            "@jupyterlab/fileeditor-extension:language-server",
            "@jupyterlab/notebook-extension:language-server",
        ),
    ),
    "execute_time": LabExtension(
        "jupyterlab-execute-time",
        None,
        {"@jupyterlab/notebook-extension:tracker": {"recordTiming": True}},
    ),
    "code_formatter": LabExtension(
        "jupyterlab_code_formatter",
        ServerPart("dsportal.session.upstream.code_formatter", r"jupyterlab_code_formatter/.*"),
        {
            "jupyterlab_code_formatter:settings": {
                "preferences": {"default_formatter": {"python": ["ruff", "ruffformat"]}}
            }
        },
    ),
    # It runs ripgrep, which follows no links: the NAS is searched only where somebody is there.
    "search": LabExtension(
        "jupyterlab-search-replace", ServerPart("dsportal.session.upstream.search", r"search/.*")
    ),
    # JupyterLab's own; what the debugger asks of kernels is in upstream/debugger.py.
    "debugger": LabExtension("@jupyterlab/debugger-extension"),
    "csv": LabExtension("@jupyterlab/csvviewer-extension"),
    # What provides the headings stays: notebooks and documents require it.
    "toc": LabExtension("@jupyterlab/toc-extension:tracker"),
    # Parts of the portal's own extension.
    "parquet": LabExtension("data-scientist-portal:tables"),
    "download": LabExtension("data-scientist-portal:download-folder"),
    "notify": LabExtension("data-scientist-portal:notify"),
}


def server_parts(wanted: Collection[str]) -> list[ServerPart]:
    """Give what the session's server loads for them, once it listens."""
    return [part for name in wanted if (part := EXTENSIONS[name].server) is not None]


def load(server: Any, part: ServerPart) -> None:
    """Load one into a server of Jupyter's that runs."""
    manager = server.extension_manager
    manager.add_extension(part.module, enabled=True)
    manager.link_extension(part.module)
    manager.load_extension(part.module)


def page_settings(wanted: Collection[str], home: Path) -> dict[str, str]:
    """Give what JupyterLab's page is to know of them, however early it is asked for.

    The language servers' part says it when it is loaded, in the same words.
    """
    if "lsp" not in wanted:
        return {}
    root = home.resolve().as_uri()
    return {"rootUri": root, "virtualDocumentsUri": f"{root}/.virtual_documents"}


def switched_off(wanted: Collection[str]) -> list[str]:
    """Give what JupyterLab's page does not start, nor lets take the place of its own parts."""
    unwanted = (one for name, one in EXTENSIONS.items() if name not in wanted)
    return [*_NEVER, *(plugin for one in unwanted for plugin in (one.page, *one.of_lab))]


def language_servers() -> dict[str, Any]:
    """Set up the one language server: it speaks over a pipe, and ends with the session.

    It runs in the session's own environment, and knows nothing of what a kernel's environment
    has besides; a program of the user's is not looked for.
    """
    return {
        "autodetect": False,
        "language_servers": {
            "pylsp": {
                "argv": [sys.executable, "-I", "-m", "pylsp"],
                "display_name": "Python (pylsp)",
                "languages": ["python"],
                "mime_types": ["text/python", "text/x-ipython"],
                # Else a folder .virtual_documents appears in the home.
                "requires_documents_on_disk": False,
                "version": 2,
            }
        },
    }
