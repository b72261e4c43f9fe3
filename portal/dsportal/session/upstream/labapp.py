"""JupyterLab without node: its version is known without asking yarn for it.

Tried with jupyterlab 4.6.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_node() -> Iterator[None]:
    """Import ``jupyterlab.labapp`` inside this, on machines that have node.

    To learn its own version, the module starts yarn to read the registry of packages
    that JupyterLab would be built with (250 ms, jupyterlab 4.6).
    """
    from jupyterlab import _version, commands

    ask = commands.get_app_version
    commands.get_app_version = lambda app_options=None: _version.__version__
    try:
        yield
    finally:
        commands.get_app_version = ask
